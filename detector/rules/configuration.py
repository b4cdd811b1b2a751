"""Rule BW401: what engines report of their configuration does not fit together.

It needs no traffic, and goes by what runs, not by what was meant. What flags alone tell is not
known here: `bleedwatch check config` reads them.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
import xxhash

from detector.finding import Confidence, Finding
from detector.rules.engine_finding import AboutEngine
from detector.runtime.limits import MAX_ENGINES, input_limit
from detector.runtime.records import DECODE, PREFILL, Sample

MISFIT: Final = "BW401"

MAX_TOLD: Final = 1_024
"""Misfits of one pool remembered as told: beyond, one is told again, under the same id."""

WHOLE_PAGES: Final = 0.01
"""By which share a pool may be smaller than configured: engines round down to whole pages."""


class _Figures(NamedTuple):
    """What a sample says of the configuration of a rank."""

    kind: str
    role: str | None
    pool: int | None
    configured: int | None
    context: int | None
    longest: int | None
    limit: int | None


class _Rank:
    """What is remembered of one rank: figures count once two scrapes in a row have shown them."""

    def __init__(self) -> None:
        self.seen: _Figures | None = None
        self.sure: _Figures | None = None
        self.since_ms = 0
        self.last_ms = 0


class _Misfit(NamedTuple):
    """One thing that does not fit, in words, and the two numbers."""

    about: str
    sentence: str
    smaller: int
    larger: int
    confidence: Confidence = Confidence.HIGH


class ConfigurationRule:
    """The rule about the engines of one pool; the samples of each come in the order of its clock.

    What does not fit is told once for its numbers; figures of an engine that was not heard of for
    `gap_ms` no longer count.
    """

    def __init__(self, kv_pool: str, *, gap_ms: int) -> None:
        self._kv_pool = kv_pool
        self._gap_ms = gap_ms
        self._ranks: dict[tuple[str, int | None], _Rank] = {}
        self._told: dict[str, None] = {}

    def sample(self, sample: Sample) -> list[Finding]:
        """Judge a sample. One that is older than the last of its rank says nothing new."""
        key = (sample.engine, sample.rank)
        rank = self._ranks.setdefault(key, _Rank())
        if len(self._ranks) > MAX_ENGINES:
            del self._ranks[next(one for one in self._ranks if one != key)]
        at_ms = sample.sampled_at_ms
        if rank.seen is not None and at_ms <= rank.last_ms:
            return []
        rank.last_ms = at_ms
        figures = _figures(sample)
        if figures != rank.seen:
            rank.seen, rank.since_ms = figures, at_ms
            return []
        rank.sure = figures
        misfits = [*_alone(sample.engine, figures), *self._beside(sample, figures)]
        findings = (self._finding(sample, rank.since_ms, one) for one in misfits)
        return [one for one in findings if self._is_new(one)]

    def _beside(self, sample: Sample, own: _Figures) -> Iterator[_Misfit]:
        """Compare an engine that only reads prompts with the one that takes the longest."""
        if own.role != PREFILL or own.limit is None:
            return
        peers = [
            (rank.sure.limit, engine)
            for (engine, _), rank in self._ranks.items()
            if rank.sure is not None
            and rank.sure.limit is not None
            and rank.sure.role == DECODE
            and sample.sampled_at_ms - rank.last_ms <= self._gap_ms
        ]
        limit, engine = max(peers, default=(0, ""))
        if own.limit < limit:
            yield _Misfit(
                f"prefill below {engine}",
                f"Prefill engine {sample.engine} rejects prompts from {own.limit:,} tokens on, "
                f"decode engine {engine} of its pool from {limit:,}: a prompt between the two that "
                "is rejected may be answered all the same, from memory that others have left.",
                own.limit,
                limit,
                # of SGLang it is known that decode answers what prefill has rejected
                Confidence.HIGH if own.kind == "sglang" else Confidence.MEDIUM,
            )

    def _finding(self, sample: Sample, since_ms: int, misfit: _Misfit) -> Finding:
        finding = AboutEngine(self._kv_pool, sample.engine).finding(
            MISFIT,
            since_ms,
            sample.sampled_at_ms,
            misfit.sentence,
            {"smaller_tokens": misfit.smaller, "larger_tokens": misfit.larger},
            rank=sample.rank,
            confidence=misfit.confidence,
        )
        place = "" if sample.rank is None else str(sample.rank)
        numbers = (str(misfit.smaller), str(misfit.larger))
        name = "\0".join((MISFIT, self._kv_pool, sample.engine, place, misfit.about, *numbers))
        # of the configuration, not of the moment: a restart of engine or worker makes no second one
        return msgspec.structs.replace(finding, id=xxhash.xxh3_128_hexdigest(name.encode()))

    def _is_new(self, finding: Finding) -> bool:
        if finding.id in self._told:
            return False
        self._told[finding.id] = None
        if len(self._told) > MAX_TOLD:
            del self._told[next(iter(self._told))]
        return True


def _figures(sample: Sample) -> _Figures:
    return _Figures(
        sample.engine_kind,
        sample.role,
        sample.pool_tokens,
        sample.configured_pool_tokens,
        sample.context_tokens,
        sample.max_input_tokens,
        input_limit(sample),
    )


def _alone(engine: str, own: _Figures) -> Iterator[_Misfit]:
    """Compare what one engine says with itself."""
    if own.pool and own.configured and own.pool < own.configured * (1 - WHOLE_PAGES):
        yield _Misfit(
            "pool below configured",
            f"The KV pool of engine {engine} runs with {own.pool:,} tokens, {own.configured:,} are "
            "configured: what was checked before the deploy is not what runs.",
            own.pool,
            own.configured,
        )
    for name, room in (("KV pool", own.pool), ("context", own.context)):
        if room and own.longest and own.longest > room:
            yield _Misfit(
                f"input above {name}",
                f"Engine {engine} accepts prompts of up to {own.longest:,} tokens, but its {name} "
                f"has {room:,}: it takes what it cannot hold.",
                room,
                own.longest,
            )
