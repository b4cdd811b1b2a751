"""Which responses of the window resemble one another as a whole, edited copies included."""

from collections import deque

import numpy as np
import xxhash

from detector.index.bands import BandIndex
from detector.index.sequences import SequenceStore
from detector.settings import CopySettings
from detector.sketch.bigrams import BIGRAM_TOKENS
from detector.sketch.header import SketchHeader
from detector.sketch.lsh import best_shape

NUM_PERM = 64
"""Values per sketch: it only names candidates, which are then compared whole."""

FALSE_POSITIVE_WEIGHT = 0.1
"""A false candidate costs a comparison, a missed one a bleed: at the threshold 94 % are named, at
a similarity of 0.6 99 %."""

MARGIN = 0.125
"""Two standard deviations of an estimate of 0.5 from 64 values, taken off the threshold."""

MOST_CANDIDATES = 64
"""Bounds the work that a stock answer that everybody gets causes."""

DOCUMENT_BYTES = 2_048
"""What a response takes in the index at most, while its arrays are larger than needed."""


class CopyIndex:
    """Sketches of the window's responses, per KV pool; names candidates by position in the store.

    Positions of sequences that the store has released are never named. `evicted` counts responses
    given up inside the window for want of memory.
    """

    def __init__(self, settings: CopySettings, store: SequenceStore, *, keep_ms: int) -> None:
        shape = best_shape(
            settings.similarity, NUM_PERM, false_positive_weight=FALSE_POSITIVE_WEIGHT
        )
        header = SketchHeader(num_perm=NUM_PERM, k=BIGRAM_TOKENS)
        self._bands = BandIndex(header, shape, most_candidates=MOST_CANDIDATES)
        self._at_least = max(settings.similarity - MARGIN, 0.0)
        self._most = max(settings.memory_bytes // DOCUMENT_BYTES, 1)
        self._keep_ms = keep_ms
        self._store = store
        self._positions: deque[int] = deque()
        self._salts: dict[str, np.uint32] = {}
        self.evicted = 0

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def nbytes(self) -> int:
        """Bytes of the sketches and their index."""
        return self._bands.nbytes

    def meet(self, at: int, *, now_ms: int) -> list[int]:
        """Add the response at a position; return those of its pool that it may resemble.

        It is kept from now on, not from its start: a pool may be far behind the others.
        """
        sequence = self._store.items[at]
        self._expire(now_ms - self._keep_ms)
        salt = self._salt(sequence.kv_pool)
        found = self._bands.meet(sequence.token_hashes, salt, now_ms, at_least=self._at_least)
        if not len(found):
            self._positions.append(at)
            return []
        first, oldest = self._bands.oldest, self._store.first_live
        named = [self._positions[number - first] for number in found.tolist()]
        self._positions.append(at)
        return [other for other in named if other >= oldest]

    def drop(self, count: int) -> None:
        """Follow the store, in which every position shifts down by `count`."""
        self._positions = deque(at - count for at in self._positions)

    def _salt(self, pool: str) -> np.uint32:
        """Return what the hashes of a pool's bigrams are combined with: pools never meet."""
        salt = self._salts.get(pool)
        if salt is None:
            salt = self._salts[pool] = np.uint32(xxhash.xxh32_intdigest(pool.encode()))
        return salt

    def _expire(self, before_ms: int) -> None:
        positions = self._positions
        gone = self._bands.expire(before_ms)
        if len(positions) - gone >= self._most:
            gone += self._bands.forget(1)
            self.evicted += 1
        for _ in range(gone):
            positions.popleft()
