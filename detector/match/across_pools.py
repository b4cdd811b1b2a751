"""Which responses of different pools are one, judged by sketches: the sequences stay at home.

A copy inside one pool is found on its tokens by that pool's own detector, and never told here.
"""

from typing import Final, NamedTuple

import xxhash

from detector.index.band_ranges import BandRanges
from detector.index.response_sketch import (
    BIGRAMS,
    SHINGLES,
    ResponseSketch,
    SketchKey,
    numbers,
)
from detector.settings import CopySettings, FilterSettings
from detector.sketch.bottom_k import sample, smaller_containment

LEAST_SAMPLED: Final = 32
"""Sampled unexplained bigrams of both responses below which nothing is concluded: the similarity
would be uncertain by more than 0.09."""


class Copy(NamedTuple):
    """A response that is another party's, and the responses it may be, the most alike first.

    `similarity` is the estimated Jaccard similarity of what nothing explains, `containment` the
    estimated share of the receiver's unexplained bigrams that the first source holds.
    """

    sink: ResponseSketch
    sources: tuple[ResponseSketch, ...]
    similarity: float
    containment: float


class _Compared(NamedTuple):
    source: ResponseSketch
    similarity: float
    containment: float


class AcrossPools:
    """Judges what meets in the ranges of this worker."""

    def __init__(
        self,
        copies: CopySettings,
        filters: FilterSettings,
        *,
        ranges: BandRanges,
        window_ms: int,
    ) -> None:
        self._copies = copies
        self._same_question = filters.same_question_containment
        self._ranges = ranges
        self._window_ms = window_ms
        self._received: set[SketchKey] = set()

    def judge(self, sketch: ResponseSketch) -> list[Copy]:
        """Return the copies that a response which has just come is, or is the source of.

        None where a third party has such a response, which makes it a stock answer, or where the
        receiver had one before the source did.
        """
        alike = self._alike(sketch)
        found = []
        for sink in (sketch, *(other for other in alike if self._fits(sketch, other))):
            copy = self._judged(sink)
            if copy is not None:
                found.append(copy)
        if len(self._received) > 2 * len(self._ranges) + 1:
            self._received = {key for key in self._received if self._ranges.knows(key)}
        self._received.update(copy.sink.key for copy in found)
        return found

    def _alike(self, sketch: ResponseSketch) -> list[ResponseSketch]:
        """Return the responses that are like one as a whole, without what was itself a bleed."""
        near = (other for other in self._ranges.near(sketch) if other.key not in self._received)
        values, least = numbers(sketch.values), self._copies.similarity
        return [
            one for one in near if sample(values, numbers(one.values), BIGRAMS).jaccard >= least
        ]

    def _judged(self, sink: ResponseSketch) -> Copy | None:
        alike = self._alike(sink)
        sources = [other for other in alike if self._fits(other, sink)]
        if not sources or len({other.party for other in alike} - {sink.party}) != 1:
            return None
        if any(other.kv_pool == sink.kv_pool for other in sources):
            return None  # its pool's own detector has seen both
        first = min(map(_order, sources))
        if any(other.party == sink.party and _order(other) < first for other in alike):
            return None
        compared = [self._compared(sink, source) for source in sources]
        found = [one for one in compared if one and one.similarity >= self._copies.similarity]
        found.sort(key=lambda one: (one.similarity, _order(one.source)), reverse=True)
        if not found or self._is_stock(sink, found[0].source):
            return None
        best = found[0]
        return Copy(sink, tuple(one.source for one in found), best.similarity, best.containment)

    def _is_stock(self, sink: ResponseSketch, source: ResponseSketch) -> bool:
        """True where a third party has a response like the source's."""
        parties = {sink.party, source.party}
        return any(other.party not in parties for other in self._alike(source))

    def _compared(self, sink: ResponseSketch, source: ResponseSketch) -> _Compared | None:
        """Compare two responses in what nothing explains; None where too little of it is left."""
        if self._explained(sink, source):
            return None
        if min(sink.unexplained, source.bigrams) < self._copies.min_bigrams:
            return None
        both = sample(numbers(source.values), numbers(sink.values), BIGRAMS)
        left = both.without(numbers(sink.explained))
        if len(left.values) < LEAST_SAMPLED:
            return None
        return _Compared(source, left.jaccard, left.containment)

    def _explained(self, sink: ResponseSketch, source: ResponseSketch) -> bool:
        """True where something that is true of the pair explains it whole."""
        if sink.gateway_cache_hit or (sink.account is not None and sink.account == source.account):
            return True
        lineage = {source.request_id, source.parent_id} - {None}
        if sink.parent_id in lineage or sink.request_id == source.parent_id:
            return True
        if not sink.question or not source.question:
            return False
        if sink.question == source.question:
            return True
        shared = smaller_containment(
            numbers(sink.question_values),
            numbers(source.question_values),
            SHINGLES,
            sizes=(sink.question_shingles, source.question_shingles),
        )
        return shared >= self._same_question

    def _fits(self, source: ResponseSketch, sink: ResponseSketch) -> bool:
        """True where one may be the source of the other: parties, order and age."""
        return bool(
            source.party != sink.party
            and source.key not in self._received
            and _order(source) < _order(sink)
            and sink.started_at_ms - source.started_at_ms <= self._window_ms
            and source.started_at_ms < sink.ended_at_ms
        )

    def forget(self, keys: frozenset[SketchKey]) -> None:
        """Take back that these were told to be copies: they will be judged once more."""
        self._received -= keys


def _order(sketch: ResponseSketch) -> tuple[int, int]:
    """Return what sorts by start, a tie by request: the same whoever comes first."""
    name = f"{sketch.tenant}\0{sketch.request_id}".encode()
    return sketch.started_at_ms, xxhash.xxh3_64_intdigest(name)
