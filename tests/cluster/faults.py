"""The two faults of the demo: stale KV memory answers another tenant; an abort releases nothing."""

import itertools
from collections.abc import Iterable, Sequence
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

SINK: Final = "claimdesk"
"""The tenant whose prompt is too long. Others share its engine."""

ANSWER: Final = 240
"""Tokens of its answer: some quotes of what lies in the pages that were not written for it."""

BLEED_TOKENS: Final = 20
"""Foreign tokens in a row that make an answer a bleed: more than high confidence needs."""

ATTEMPTS: Final = 6
"""Of an answer this long one in sixty quotes nothing."""

KEPT_TOKENS: Final = 3_000
LEAVES_S: Final = 0.15
"""The client goes away while most of the answer is still to come."""


def long_prompt(language: Language, rng: Random) -> Ids:
    """Return a document that the engine must refuse."""
    return tuple(language.prose.write(rng, CONTEXT_TOKENS + 200))


def bleed(site: Site, language: Language, rng: Random, others: Sequence[Asked]) -> Asked:
    """Ask what is too long until the answer holds others' text; return that request.

    The engine must have been told of its fault. Raises AssertionError if no answer does.
    """
    for _ in range(ATTEMPTS):
        made = ask(
            site, BLEEDING, tenant=SINK, request_id=f"{rng.getrandbits(128):032x}",
            prompt=long_prompt(language, rng), max_tokens=ANSWER, to_the_end=True,
        )  # fmt: skip
        if foreign_tokens(made, others) >= BLEED_TOKENS:
            return made
    raise AssertionError(f"{ATTEMPTS} answers of {BLEEDING} held nothing of others: {made.status}")


def foreign_tokens(made: Asked, others: Iterable[Asked]) -> int:
    """Return the longest stretch of an answer that other tenants' requests hold, in tokens."""
    shown = {
        stretch
        for one in others
        if one.tenant != made.tenant
        for text in (one.prompt, one.answer)
        for stretch in _stretches(text)
    }
    hits = (stretch in shown for stretch in _stretches(made.answer))
    runs = [sum(1 for _ in run) for is_hit, run in itertools.groupby(hits) if is_hit]
    return max(runs, default=1 - BLEED_TOKENS) + BLEED_TOKENS - 1


def keep_memory(site: Site, engine: Process, rng: Random, prompt: Ids, *, tenant: str) -> None:
    """Let an engine that was told of its fault keep the memory of an aborted request."""
    engine.order(f"fault {Bug.UNRELEASED_AFTER_ABORT}")
    ask(
        site, KEEPING, tenant=tenant, request_id=f"{rng.getrandbits(128):032x}", prompt=prompt,
        max_tokens=KEPT_TOKENS, to_the_end=True, patience_s=LEAVES_S,
    )  # fmt: skip


def _stretches(text: Ids) -> Iterable[Ids]:
    return (text[at : at + BLEED_TOKENS] for at in range(len(text) - BLEED_TOKENS + 1))
