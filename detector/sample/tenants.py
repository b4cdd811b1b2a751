"""The tenants of the sample traffic: who asks what, how often, and on which engine."""

import enum
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from detector.model import EngineId, TenantId
from detector.sample import phrases
from detector.sample.language import Ids, Language


class TenantKind(enum.StrEnum):
    """What a tenant's product is, which decides the style of its questions and answers."""

    CHAT = "chat"
    SUPPORT = "support"
    CODE = "code"
    AGENT = "agent"


class PromptSource(enum.StrEnum):
    """Where a tenant's system prompt comes from: its own, the public agent prompt, or none."""

    OWN = "own"
    PUBLIC = "public"
    NONE = "none"


_PRODUCTS = (
    ("harbour-bank", TenantKind.SUPPORT, PromptSource.OWN),
    ("lintwise", TenantKind.CODE, PromptSource.OWN),
    ("open-chat", TenantKind.CHAT, PromptSource.NONE),
    ("fieldops", TenantKind.AGENT, PromptSource.PUBLIC),
    ("maple-clinic", TenantKind.CHAT, PromptSource.OWN),
    ("repo-pilot", TenantKind.CODE, PromptSource.NONE),
    ("freightline", TenantKind.AGENT, PromptSource.PUBLIC),
    ("polar-travel", TenantKind.SUPPORT, PromptSource.OWN),
    ("tutor-hub", TenantKind.CHAT, PromptSource.OWN),
    ("testsmith", TenantKind.CODE, PromptSource.OWN),
    ("claimdesk", TenantKind.AGENT, PromptSource.PUBLIC),
    ("byte-forum", TenantKind.CHAT, PromptSource.NONE),
)

MODELS = ("qwen3-8b", "qwen3-32b")

OWN_PROMPT_TOKENS = (70, 160)
"""Length of the part of a system prompt that only its tenant has."""

SECONDS_PER_TOKEN = (0.012, 0.03)
"""Decode speed a tenant sees: an engine under light to heavy load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """One tenant. `weight` is its share of sessions; `engine` serves most of its sessions."""

    name: TenantId
    kind: TenantKind
    model: str
    engine: EngineId
    weight: float
    seconds_per_token: float
    system_prompt: Ids
    deck: Iterator[Ids]
    """The passages this tenant pastes into its questions, endless; no two tenants share one."""


def engine_names(count: int) -> tuple[EngineId, ...]:
    """Names of `count` engines; each is a KV pool of its own."""
    return tuple(EngineId(f"engine-{number}") for number in range(count))


def make_tenants(
    rng: Random, language: Language, *, count: int, engines: Sequence[EngineId]
) -> tuple[Tenant, ...]:
    """`count` tenants, spread evenly over kinds and engines; the passages are dealt out."""
    prose = rng.sample(language.prose_passages, len(language.prose_passages))
    code = rng.sample(language.code_passages, len(language.code_passages))
    tenants = []
    for number in range(count):
        product, kind, source = _PRODUCTS[number % len(_PRODUCTS)]
        series = number // len(_PRODUCTS)
        hand = code[number::count] if kind is TenantKind.CODE else prose[number::count]
        tenants.append(
            Tenant(
                name=TenantId(f"{product}-{series + 1}" if series else product),
                kind=kind,
                model=MODELS[number % len(MODELS)],
                engine=engines[number % len(engines)],
                weight=rng.uniform(0.5, 2.0),
                seconds_per_token=rng.uniform(*SECONDS_PER_TOKEN),
                system_prompt=_system_prompt(rng, language, product=product, source=source),
                deck=itertools.cycle(hand or prose),
            )
        )
    return tuple(tenants)


def _system_prompt(rng: Random, language: Language, *, product: str, source: PromptSource) -> Ids:
    encode = language.tokenizer.encode
    if source is PromptSource.NONE:
        return ()
    if source is PromptSource.PUBLIC:
        return tuple(encode(phrases.AGENT_PROMPT))
    name = product.replace("-", " ").title()
    own = language.prose.write(rng, rng.randint(*OWN_PROMPT_TOKENS))
    rule = rng.choice(phrases.SYSTEM_RULES)
    return tuple(encode(f"You are the assistant of {name}.\n") + own + encode(f"\n{rule}"))
