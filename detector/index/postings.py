"""The exact shingle index of the window: every pool's postings in one table."""

from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from detector.index.sequences import SequenceStore
from detector.kernels import postings
from detector.sketch.shingle import Keys, Mask

LOAD_LIMIT = 0.55
GROWTH = 1.15
"""At 16 bytes a row: 29 bytes per posting when full, 33 right after growth."""

_FIRST_HOMES = 1 << 14
_LEAST_HOMES = 1 << 19
"""The smallest budget still holds the longest sequence part (131,072 tokens) several times."""

_ROW_BYTES = 16
_SWEEP_SHARE = 0.125
"""A sweep reads the whole table, so it waits until an eighth of the sequences has expired; till
then their rows are used again one by one."""

_EVICT_SHARE = 0.1
"""Share of the sequences given up at once when the byte budget is reached inside the window."""


class Hits(NamedTuple):
    """Pairs of equal shingles, one element per pair.

    `other` is the position of the other sequence in the store, `other_at` and `at` the token
    offsets in the other and the current sequence; `received` is True where the current sequence
    is the sink, False where the other one is.
    """

    other: NDArray[np.int64]
    other_at: NDArray[np.int64]
    at: NDArray[np.int64]
    received: Mask


class PostingIndex:
    """Shingle key and pool to (first, last) posting of each owner, within a byte budget."""

    def __init__(self, store: SequenceStore, *, memory_bytes: int) -> None:
        self._store = store
        self._max_homes = max(_LEAST_HOMES, memory_bytes // _ROW_BYTES - postings.PADDING_ROWS)
        self._homes = _FIRST_HOMES
        self._slots = np.zeros((self._homes + postings.PADDING_ROWS, 2), np.int64)
        self._salts: dict[str, np.int64] = {}
        self._buffer = np.zeros((4096, 3), np.int64)
        self.rows = 0
        self.evicted_sequences = 0

    @property
    def nbytes(self) -> int:
        """Bytes held by the table."""
        return int(self._slots.nbytes)

    def pool_keys(self, keys: Keys, pool: str) -> Keys:
        """Return the keys as they are filed: the match scope is one pool."""
        salt = self._salts.get(pool)
        if salt is None:
            salt = np.int64(np.uint64(xxhash.xxh3_64_intdigest(pool.encode())).view(np.int64))
            self._salts[pool] = salt
        return keys ^ salt

    def observe(
        self, pool_keys: Keys, use: Mask, current: int, *, expired: int, window_ms: int
    ) -> Hits:
        """Probe and insert the used keys of the sequence at `current`; return the pairs found.

        The oldest `expired` sequences of the store count as gone.
        """
        store = self._store
        chunks: list[NDArray[np.int64]] = []
        following = 0
        while True:
            written, added, following = postings.probe_insert(
                self._slots, self._homes, pool_keys, use, following, current, expired,
                store.owners, store.starts, store.ends, store.orders, window_ms, self._buffer,
            )  # fmt: skip
            self.rows += added
            if following == len(pool_keys) and not chunks:
                found = self._buffer[:written]
                break
            chunks.append(self._buffer[:written].copy())
            if following == len(pool_keys):
                found = np.concatenate(chunks)
                break
        return Hits(
            found[:, 0].copy(),
            found[:, 1].copy(),
            found[:, 2] & np.int64(0xFFFFFFFF),
            (found[:, 2] >> 32) == 1,
        )

    @property
    def table(self) -> tuple[NDArray[np.int64], int]:
        """The rows and the number of homes, as kernels take them."""
        return self._slots, self._homes

    def make_room(self, keys: int, expired: int) -> int:
        """Make room for that many keys; return how many of the oldest sequences must go.

        Drops expired sequences first, grows next, and gives up live sequences only at the byte
        budget (`evicted_sequences` counts them: lost recall). The caller drops the same number
        from the store.
        """
        if self.rows + keys <= self._homes * LOAD_LIMIT and not self._is_crowded(0):
            return 0
        dropped = expired if expired >= len(self._store) * _SWEEP_SHARE else 0
        if dropped:
            self._sweep(dropped)
        while self.rows + keys > self._homes * LOAD_LIMIT and self._homes < self._max_homes:
            self._grow(keys)
        while dropped < len(self._store) and (
            self.rows + keys > self._homes * LOAD_LIMIT or self._is_crowded(dropped)
        ):
            more = max(1, int((len(self._store) - dropped) * _EVICT_SHARE))
            self._sweep(more)
            dropped += more
            self.evicted_sequences += more
        return dropped

    def live_postings(self, expired: int) -> int:
        """Count the postings of sequences in the window; reads the whole table."""
        return int(postings.live_rows(self._slots, expired))

    def forget(self, dropped: int) -> None:
        """Drop the postings of the oldest sequences; the caller drops them from the store."""
        self._sweep(dropped)

    def _is_crowded(self, dropped: int) -> bool:
        return len(self._store) - dropped >= postings.MAX_SEQUENCES

    def _sweep(self, dropped: int) -> None:
        self.rows = int(postings.sweep(self._slots, self._homes, dropped))

    def _grow(self, keys: int) -> None:
        wanted = max(self._homes * GROWTH, (self.rows + keys) / LOAD_LIMIT)
        self._homes = int(min(wanted, self._max_homes)) + 1
        old = self._slots
        self._slots = np.zeros((self._homes + postings.PADDING_ROWS, 2), np.int64)
        self.rows -= int(postings.rehash(old, self._slots, self._homes))
