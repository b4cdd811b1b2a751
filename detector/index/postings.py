"""The exact shingle index of the window: every pool's postings in one table."""

from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from detector.index.bucket_table import BucketTable, homes_within
from detector.index.sequences import SequenceStore
from detector.kernels import postings
from detector.sketch.shingle import Keys, Mask

LOAD_LIMIT = 0.65
GROWTH = 1.08
"""At 16 bytes a row and growth that begins at 0.585: 27 to 31 bytes per row in use."""

_FIRST_HOMES = 1 << 12
_LEAST_HOMES = 1 << 17
"""The smallest budget still holds the longest sequence part (131,072 tokens) several times."""

_EVICT_SHARE = 0.1
"""Share of the sequences given up at once when the byte budget is reached inside the window, and
of all numbers that must be free again when they run out."""


_GIVEN = np.int64(2 << 32)
"""Direction 2 of the kernel: the current sequence is the source."""


Positions = NDArray[np.int32]
"""Token offsets of shingles in their sequence, ascending."""


class Hits(NamedTuple):
    """Pairs of equal shingles, one element per pair.

    `other` is the position of the other sequence in the store, `other_at` and `at` the token
    offsets in the other and the current sequence; `received` is True where the current sequence
    is the sink, False where the other one is. The arrays are valid until the next probe.
    """

    other: NDArray[np.int64]
    other_at: NDArray[np.int64]
    at: NDArray[np.int64]
    received: Mask


_NONE = np.empty(0, np.int64)
_NO_HITS = Hits(_NONE, _NONE, _NONE, np.empty(0, np.bool_))


class PostingIndex:
    """Shingle key and pool to (first, last) posting of each owner, within a byte budget.

    Rows of gone sequences are used again or swept, a bucket for every key that comes in: the whole
    table about twice in a window (once leaves a third of the rows to gone ones: 39 bytes a live
    posting instead of 34). Growing, too, goes on a few buckets for every key.
    """

    def __init__(self, store: SequenceStore, *, memory_bytes: int) -> None:
        self._store = store
        self._table = BucketTable(
            _FIRST_HOMES,
            max(_LEAST_HOMES, homes_within(memory_bytes)),
            limit=LOAD_LIMIT,
            growth=GROWTH,
            mask=postings.SEQUENCE_MASK,
        )
        self._gone = 0
        self._swept = 0
        self._spare = 0
        self._salts: dict[str, np.int64] = {}
        self._buffer = np.zeros((4096, 3), np.int64)
        self.evicted_sequences = 0

    @property
    def nbytes(self) -> int:
        """Bytes held by the table."""
        return self._table.nbytes

    @property
    def rows(self) -> int:
        """Rows in use, those of gone sequences included until they are swept."""
        return self._table.rows

    def salt(self, pool: str) -> np.int64:
        """Return what a pool's keys are filed with (exclusive or): the match scope is one pool."""
        salt = self._salts.get(pool)
        if salt is None:
            digest = xxhash.xxh3_64_intdigest(pool.encode())
            salt = self._salts[pool] = np.uint64(digest).view(np.int64)
        return salt

    def observe(
        self, pool_keys: Keys, positions: Positions, current: int, *, window_ms: int
    ) -> Hits:
        """Probe and insert keys at their positions in the sequence `current`; return the pairs.

        Call `make_room` before. Sweeps a little of the table as it goes.
        """
        store, slots = self._store, self._table.slots
        chunks: list[NDArray[np.int64]] = []
        following = 0
        while True:
            written, following = postings.probe_insert(
                slots, pool_keys, positions, following, current, self._gone,
                store.owners, store.starts, store.ends, store.orders, window_ms, self._buffer,
            )  # fmt: skip
            if following == len(pool_keys):
                break
            chunks.append(self._buffer[:written].copy())
        if not self._table.is_growing:  # growing drops what is gone as well
            self._swept = int(postings.sweep(slots, self._swept, len(pool_keys), self._gone))
        if not written and not chunks:
            return _NO_HITS
        found = self._buffer[:written]
        if chunks:
            found = np.concatenate([*chunks, found])
        way_and_at = found[:, 2]
        return Hits(
            found[:, 0], found[:, 1], way_and_at & np.int64(0xFFFFFFFF), way_and_at < _GIVEN
        )

    @property
    def table(self) -> tuple[NDArray[np.int64], int]:
        """The rows and the number of gone sequences, as kernels take them."""
        return self._table.slots, self._gone

    @property
    def is_full(self) -> bool:
        """True when rows can name no further sequence: make room, then renumber."""
        return len(self._store) >= postings.MAX_SEQUENCES

    def make_room(self, keys: int, expired: int) -> int:
        """Make room for that many keys; return how many of the oldest sequences count as gone.

        That is `expired` unless the byte budget is reached or all numbers are taken: then live
        sequences are given up too, and counted as evicted: lost recall. Numbers of gone ones are
        free only after `renumber`.
        """
        self._gone = max(self._gone, expired)
        if self.is_full:  # so many must be gone at least that renumbering pays
            self._evict(self._share_of(len(self._store)) - self._gone)
        if keys <= self._spare:
            self._spare -= keys
            return self._gone
        table = self._table
        if table.make_room(keys, gone=self._gone):
            self._spare = table.spare - keys
            return self._gone
        self._spare = 0
        self._sweep_all()
        while not table.has_room(keys) and self._gone < len(self._store):
            self._evict(self._share_of(len(self._store) - self._gone))
            self._sweep_all()
        return self._gone

    def renumber(self) -> int:
        """Forget the numbers of the gone sequences; return how many the store must drop."""
        self._sweep_all()
        dropped, self._gone = self._gone, 0
        postings.renumber(self._table.slots, dropped)
        return dropped

    def showings(self, pool_keys: Keys, party: int) -> tuple[int, int]:
        """Return the first and last sequence in which a party has shown a key, or (-1, -1)."""
        owners = self._store.owners
        return postings.showings(*self.table, pool_keys, owners, party)  # type: ignore[no-any-return]

    def live_postings(self, expired: int) -> int:
        """Count the postings of sequences in the window; reads the whole table."""
        return int(postings.live_rows(self._table.slots, expired))

    def _share_of(self, sequences: int) -> int:
        return max(1, int(sequences * _EVICT_SHARE))

    def _evict(self, count: int) -> None:
        """Give that many of the oldest up, if any, though the window holds them."""
        self._gone += max(0, count)
        self.evicted_sequences += max(0, count)

    def _sweep_all(self) -> None:
        slots = self._table.slots
        postings.sweep(slots, 0, len(slots), self._gone)
