"""The exact shingle index of the window: every pool's postings in one table."""

from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from detector.index.sequences import SequenceStore
from detector.kernels import postings
from detector.kernels.buckets import PADDING, ROWS, new_table
from detector.sketch.shingle import Keys, Mask

LOAD_LIMIT = 0.55
GROWTH = 1.15
"""At 16 bytes a row: 29 bytes per posting when full, 33 right after growth; one bucket in six
overflows when full."""

_FIRST_HOMES = 1 << 12
_LEAST_HOMES = 1 << 17
"""The smallest budget still holds the longest sequence part (131,072 tokens) several times."""

_BUCKET_BYTES = 64
_EVICT_SHARE = 0.1
"""Share of the sequences given up at once when the byte budget is reached inside the window."""


_GIVEN = np.int64(2 << 32)
"""Direction 2 of the kernel: the current sequence is the source."""


_SCATTER = np.int64(0x9E3779B97F4A7C15 - (1 << 64))
"""Odd: multiplying by it is a bijection. 2^64 over the golden ratio."""


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

    Rows of gone sequences are used again or swept, a bucket for every two keys that come in: the
    whole table about once in a window, without a pause.

    A sample by winnowing holds the smallest keys of their neighbours, and a table that places keys
    by their highest bits would pile them up at one end and lose them there (measured: 71 % of the
    postings of 1,500 responses): `sampled` keys are scattered first.
    """

    def __init__(self, store: SequenceStore, *, memory_bytes: int, sampled: bool = False) -> None:
        self._store = store
        self._sampled = sampled
        self._max_homes = max(_LEAST_HOMES, memory_bytes // _BUCKET_BYTES - PADDING)
        self._homes = _FIRST_HOMES
        self._slots = new_table(self._homes)
        self._gone = 0
        self._swept = 0
        self._salts: dict[str, np.int64] = {}
        self._buffer = np.zeros((4096, 3), np.int64)
        self.rows = 0
        self.evicted_sequences = 0

    @property
    def nbytes(self) -> int:
        """Bytes held by the table."""
        return int(self._slots.nbytes)

    def salt(self, pool: str) -> np.int64:
        """Return what a pool's keys are combined with (exclusive or): pools never meet."""
        salt = self._salts.get(pool)
        if salt is None:
            digest = xxhash.xxh3_64_intdigest(pool.encode())
            salt = self._salts[pool] = np.uint64(digest).view(np.int64)
        return salt

    def pool_keys(self, keys: Keys, pool: str) -> Keys:
        """Return the keys as they are filed: the match scope is one pool."""
        salted = keys ^ self.salt(pool)
        return salted * _SCATTER if self._sampled else salted

    def observe(self, pool_keys: Keys, use: Mask, current: int, *, window_ms: int) -> Hits:
        """Probe and insert the used keys of the sequence at `current`; return the pairs found.

        Call `make_room` before. Sweeps a little of the table as it goes.
        """
        store = self._store
        chunks: list[NDArray[np.int64]] = []
        following = 0
        while True:
            written, added, following = postings.probe_insert(
                self._slots, self._homes, pool_keys, use, following, current, self._gone,
                store.owners, store.starts, store.ends, store.orders, window_ms, self._buffer,
            )  # fmt: skip
            self.rows += added
            if following == len(pool_keys):
                break
            chunks.append(self._buffer[:written].copy())
        self._swept, emptied = postings.sweep(
            self._slots, self._homes, self._swept, len(pool_keys) // 2, self._gone
        )
        self.rows -= int(emptied)
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
    def table(self) -> tuple[NDArray[np.int64], int, int]:
        """The rows, the number of homes and the number of gone sequences, as kernels take them."""
        return self._slots, self._homes, self._gone

    def make_room(self, keys: int, expired: int) -> int:
        """Make room for that many keys; return how many of the oldest sequences count as gone.

        That is `expired` unless the byte budget is reached: then live sequences are given up too,
        and counted as evicted: lost recall.
        """
        self._gone = max(self._gone, expired)
        while not self._fits(keys) and self._homes < self._max_homes:
            self._grow(keys)
        if not self._fits(keys):
            self._sweep_all()
        while not self._fits(keys) and self._gone < len(self._store):
            more = max(1, int((len(self._store) - self._gone) * _EVICT_SHARE))
            self._gone += more
            self.evicted_sequences += more
            self._sweep_all()
        return self._gone

    def renumber(self) -> int:
        """Forget the numbers of the gone sequences; return how many the store must drop."""
        self._sweep_all()
        dropped, self._gone = self._gone, 0
        postings.renumber(self._slots, dropped)
        return dropped

    def showings(self, pool_key: np.int64, party: int) -> tuple[int, int]:
        """Return the first and last sequence in which a party has shown a key, or (-1, -1)."""
        owners = self._store.owners
        return postings.showings(*self.table, pool_key, owners, party)  # type: ignore[no-any-return]

    def live_postings(self, expired: int) -> int:
        """Count the postings of sequences in the window; reads the whole table."""
        return int(postings.live_rows(self._slots, expired))

    def _fits(self, keys: int) -> bool:
        return self.rows + keys <= self._homes * ROWS * LOAD_LIMIT

    def _sweep_all(self) -> None:
        buckets = self._homes + PADDING
        _, emptied = postings.sweep(self._slots, self._homes, 0, buckets, self._gone)
        self.rows -= int(emptied)

    def _grow(self, keys: int) -> None:
        wanted = max(self._homes * GROWTH, (self.rows + keys) / (ROWS * LOAD_LIMIT))
        self._homes = int(min(wanted + 1, self._max_homes))
        old = self._slots
        self._slots = new_table(self._homes)
        self.rows = int(postings.rehash(old, self._slots, self._homes, self._gone))
        self._swept = 0
