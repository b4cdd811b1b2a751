"""Edited copies: a response that is another tenant's as a whole though no run of tokens is left.

A copy in which every tenth token was replaced, or something put in after every eight, holds no
shingle of the original. Its bigrams still give it away: answers to different questions hardly ever
share half of them. So this asks only for explanations that are true of whole responses.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from detector.index.copies import CopyIndex
from detector.index.sequences import SequenceStore, request_key
from detector.kernels.bigrams import bigram_keys
from detector.match.attribution import Attribution
from detector.match.explanation import ExplanationFilter
from detector.match.reasons import UNEXPLAINED, by_reason
from detector.match.sink import Sink, SinkHits
from detector.match.verdict import Verdict
from detector.model import Hashes, Kind
from detector.settings import CopySettings
from detector.sketch.bigrams import jaccard_of
from detector.sketch.shingle import SHINGLE_TOKENS, Keys, Mask, shingle_keys

MAX_COMPARED = 8
"""Responses compared whole with one that comes in, the latest first: bounds the work."""


class _Compared(NamedTuple):
    """How alike a source is in what nothing explains, and what explained the rest."""

    at: int
    similarity: float
    shared: Keys
    reasons: dict[str, int]


class Copies:
    """Finds the responses of the window that are edited copies of one another."""

    def __init__(
        self,
        settings: CopySettings,
        *,
        store: SequenceStore,
        index: CopyIndex,
        explanations: ExplanationFilter,
        window_ms: int,
    ) -> None:
        self._settings = settings
        self._store = store
        self._index = index
        self._filter = explanations
        self._window_ms = window_ms
        self._tainted: set[int] = set()

    def meet(self, at: int, *, now_ms: int) -> list[int]:
        """Add a sequence; return the responses of the window that it may resemble.

        Prompts and short responses resemble nothing.
        """
        sequence = self._store.items[at]
        long_enough = len(sequence.token_hashes) > self._settings.min_bigrams
        if sequence.kind is Kind.PROMPT or not long_enough:
            return []
        return self._index.meet(at, now_ms=now_ms)

    def taint(self, at: int) -> None:
        """Note that a response holds what is another's: it makes nothing common, and is no source.

        Otherwise a content that bleeds into three tenants would look like a stock answer.
        """
        if len(self._tainted) > 2 * len(self._index) + 1:
            self._tainted = {one for one in self._tainted if one >= self._store.first_live}
        self._tainted.add(at)

    def drop(self, count: int) -> None:
        """Follow the store, in which every position shifts down by `count`."""
        self._index.drop(count)
        self._tainted = {at - count for at in self._tainted if at >= count}

    def pairs(self, at: int, near: list[int]) -> Iterator[tuple[int, list[int]]]:
        """Yield (sink, its possible sources) among the response at `at` and what resembles it.

        Nothing where a third party has such a response too, which makes it a stock answer, or
        where the receiver had one before the source did.
        """
        alike = [other for other in near if other not in self._tainted]
        party = self._party(at)
        others = {self._party(other) for other in alike} - {party}
        if len(others) != 1:
            return
        orders = self._store.orders
        alike.append(at)
        foreign = [other for other in alike if self._party(other) != party]
        sinks = [at, *(other for other in foreign if self._fits(at, other))]
        for sink in sinks[:1] + sinks[1:][-MAX_COMPARED:]:
            sources = [other for other in alike if self._fits(other, sink)][-MAX_COMPARED:]
            first = min((orders[source] for source in sources), default=0)
            own = [other for other in alike if self._party(other) == self._party(sink)]
            if sources and all(orders[other] >= first for other in own):
                yield sink, sources

    def judge(self, sink: Sink, sources: list[int]) -> Attribution | None:
        """Return which of one party's responses the sink is an edited copy of, if of any."""
        compared = [self._compare(sink, at) for at in sources]
        found = [one for one in compared if one and one.similarity >= self._settings.similarity]
        if not found:
            return None
        found.sort(key=lambda one: (-one.similarity, -self._store.orders[one.at]))
        items = [self._store.items[one.at] for one in found]
        return Attribution(
            party=self._party(found[0].at),
            verdict=self._verdict(sink, found[0]),
            sources=tuple({request_key(item): item for item in items}.values()),
        )

    def _compare(self, sink: Sink, at: int) -> _Compared | None:
        """Compare two responses in what nothing explains; None where too little of it is left."""
        source = self._store.items[at]
        by_pair = self._filter.by_pair(sink, source)
        if by_pair.all():
            return None
        count = len(sink.keys)
        hits = SinkHits(np.full(count, at), np.zeros(count, np.int64), np.arange(count))
        codes = self._filter.by_shingle(sink, hits, exact=True)
        codes = self._filter.allowed(sink, hits.sink_at, codes)
        explained = np.union1d(
            _bigrams_within(sink.sequence.token_hashes, codes != UNEXPLAINED),
            _bigrams_within(source.token_hashes, by_pair[: 1 - SHINGLE_TOKENS] != UNEXPLAINED),
        )
        mine = np.setdiff1d(bigram_keys(sink.sequence.token_hashes), explained)
        theirs = np.setdiff1d(bigram_keys(source.token_hashes), explained)
        if min(len(mine), len(theirs)) < self._settings.min_bigrams:
            return None
        return _Compared(
            at=at,
            similarity=jaccard_of(mine, theirs),
            shared=np.intersect1d(mine, theirs, assume_unique=True),
            reasons=by_reason(np.bincount(codes)),
        )

    def _verdict(self, sink: Sink, best: _Compared) -> Verdict:
        tokens = sink.sequence.token_hashes
        equal = np.isin(bigram_keys(tokens), best.shared)
        matched = np.append(equal, np.False_) | np.insert(equal, 0, np.False_)
        held = shingle_keys(self._store.items[best.at].token_hashes)
        return Verdict(
            source=best.at,
            tokens=int(matched.sum()),
            chain=(0, 0),
            runs=(),
            keys=best.shared,
            matched_tokens=int(matched.sum()),
            matched_shingles=int(np.isin(sink.keys, held).sum()),
            rarity=0.0,
            reasons=best.reasons,
            similarity=best.similarity,
        )

    def _fits(self, source: int, sink: int) -> bool:
        """True where one may be the source of the other: parties, order, age and taint."""
        store = self._store
        return bool(
            self._party(source) != self._party(sink)
            and source not in self._tainted
            and store.orders[source] < store.orders[sink]
            and store.starts[sink] - store.starts[source] <= self._window_ms
            and store.starts[source] < store.ends[sink]
        )

    def _party(self, at: int) -> int:
        return int(self._store.owners[at]) >> 1


def _bigrams_within(tokens: Hashes, shingles: Mask) -> Keys:
    """Return the bigrams that lie in one of the shingles."""
    covered = tokens_covered(shingles, len(tokens))
    within: Keys = bigram_keys(tokens)[covered[:-1] & covered[1:]]
    return within


def tokens_covered(shingles: Mask, tokens: int) -> Mask:
    """True for every token that lies in one of the shingles."""
    steps = np.zeros(tokens + 1, np.int64)
    at = np.flatnonzero(shingles)
    steps[at] += 1
    steps[at + SHINGLE_TOKENS] -= 1
    covered: Mask = np.cumsum(steps)[:tokens] > 0
    return covered
