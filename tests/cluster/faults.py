"""Two faults of engines: stale KV memory answers another tenant; an abort releases nothing."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

from detector.sample.language import Ids, Language
from tests.cluster.clients import Asked, ask
from tests.cluster.logged_engine import CONTEXT_TOKENS
from tests.cluster.process import Process
from tests.cluster.site import Site
from tests.fakes.cluster.bugs import Bug

BLEEDING: Final = "engine-0"
KEEPING: Final = "engine-1"
"""Both are SGLang; the third engine stays sound."""

SOURCE: Final = "harbour-bank"
SINK: Final = "claimdesk"
"""The tenant whose document lies in the memory, and the one whose prompt is too long."""

DOCUMENT: Final = 6_000
TOO_LONG: Final = CONTEXT_TOKENS + 100
ANSWER: Final = 240
"""Tokens of prompts and of the answer, which quotes what lies in pages not written for it."""

BLEED_TOKENS: Final = 20
"""Foreign tokens in a row that make an answer a bleed: quotes have 20 to 36."""

ATTEMPTS: Final = 6
"""Of answers this long one in sixty quotes nothing, and some quotes are cut short."""

REFUSED: Final = "too-long-"
"""How the ids of requests begin that the engine should have refused."""

KEPT_TOKENS: Final = 3_000
LEAVES_S: Final = 0.3
"""The client goes away while most of the answer is still to come."""


@dataclass(frozen=True, slots=True)
class Bleed:
    """An answer that holds text of another tenant's document, `tokens` in a row."""

    source: Asked
    sink: Asked
    tokens: int


def bleed(site: Site, engine: Process, language: Language, rng: Random) -> Bleed | None:
    """Let a document be read, then ask what is too long until the answer quotes the document.

    None if no answer does, as when the engine is away.
    """
    engine.order(f"fault {Bug.STALE_AFTER_REJECT}")
    document = tuple(language.prose.write(rng, DOCUMENT))
    source = _ask(site, SOURCE, f"document-{_new_id(rng)}", document, answer=16)
    for _ in range(ATTEMPTS):
        prompt = tuple(language.prose.write(rng, TOO_LONG))
        sink = _ask(site, SINK, f"{REFUSED}{_new_id(rng)}", prompt, answer=ANSWER)
        tokens = longest_common(source.prompt, sink.answer)
        if tokens >= BLEED_TOKENS:
            return Bleed(source, sink, tokens)
    return None


def longest_common(text: Ids, answer: Ids) -> int:
    """Return how many tokens in a row of an answer are in a text; 0 below `BLEED_TOKENS`."""
    shown = set(_stretches(text))
    hits = (stretch in shown for stretch in _stretches(answer))
    runs = [sum(1 for _ in run) for is_hit, run in itertools.groupby(hits) if is_hit]
    return max(runs) + BLEED_TOKENS - 1 if runs else 0


def keep_memory(site: Site, engine: Process, rng: Random, prompt: Ids, *, tenant: str) -> Asked:
    """Let an engine keep the memory of an aborted request; return the request."""
    engine.order(f"fault {Bug.UNRELEASED_AFTER_ABORT}")
    return ask(
        site, KEEPING, tenant=tenant, request_id=_new_id(rng), prompt=prompt,
        max_tokens=KEPT_TOKENS, to_the_end=True, patience_s=LEAVES_S,
    )  # fmt: skip


def _ask(site: Site, tenant: str, request_id: str, prompt: Ids, *, answer: int) -> Asked:
    return ask(
        site, BLEEDING, tenant=tenant, request_id=request_id, prompt=prompt, max_tokens=answer,
        to_the_end=True,
    )  # fmt: skip


def _new_id(rng: Random) -> str:
    return f"{rng.getrandbits(128):032x}"


def _stretches(text: Ids) -> Iterator[Ids]:
    return (text[at : at + BLEED_TOKENS] for at in range(len(text) - BLEED_TOKENS + 1))
