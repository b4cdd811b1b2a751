"""A table of buckets that grows in place, a bounded number of buckets at a time."""

import mmap

import numpy as np
from numpy.typing import NDArray

from detector.kernels import buckets
from detector.kernels.buckets import BORDER, BUCKET_BYTES, HOMES, PADDING, ROWS, USED, WIDER

GROW_AT = 0.9
"""Share of the load limit at which growing begins; it is done before the limit is reached."""

BUCKETS_PER_KEY = 6
"""Buckets moved for every key that comes in while the table grows: from 0.585 of the rows to 0.65
a table of n homes takes 0.26 n keys, so 3.9 would be enough."""

HUGE_BYTES = 4 * 1024**2
"""In use from which on a table asks for huge pages: in a large one they spare most of the address
translation, a small one would take two MiB. Measured: 0.6 MiB for an index and a range at first."""


def homes_within(nbytes: int) -> int:
    """Return how many homes a table of that many bytes has."""
    return nbytes // BUCKET_BYTES - PADDING - 1


class BucketTable:
    """Rows for up to `most` homes, of which `homes` are used at first.

    `limit` is the share of the rows in use that is never exceeded, `growth` the factor by which
    the table grows. Rows whose value word has (word & mask) <= gone are dropped on the way; the
    defaults keep every row. Address space is reserved for all, memory taken for what is in use.
    """

    def __init__(
        self, homes: int, most: int, *, limit: float, growth: float, mask: int = 0
    ) -> None:
        # pages begin with a cache line, so that one bucket is one line
        self._memory = mmap.mmap(
            -1, 8 * buckets.words(most), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        )
        self._reserve: NDArray[np.int64] = np.frombuffer(self._memory, np.int64)
        self._is_huge = False
        self._most = most
        self._limit = limit
        self._growth = growth
        self._mask = mask
        self.slots: NDArray[np.int64]
        """The part in use, as kernels take it."""
        self._use(min(homes, most))
        self.slots[HOMES] = self.slots[WIDER]
        self._set_limits()
        self.is_growing = False
        """True while rows are still to be moved."""

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        return int(self.slots.nbytes)

    @property
    def homes(self) -> int:
        """Homes, those of the wider table while growing."""
        return self.slots.item(WIDER)

    @property
    def rows(self) -> int:
        """Rows that are not empty."""
        return self.slots.item(USED)

    @property
    def spare(self) -> int:
        """How many keys may come in before `make_room` has anything to do: owners count down."""
        return 0 if self.is_growing else self._wide - self.rows

    def has_room(self, keys: int) -> bool:
        """True while that many more keys stay within the load limit."""
        return self.rows + keys <= self._full

    def make_room(self, keys: int, *, most: int | None = None, gone: int = -1) -> bool:
        """Take the growth a step on that many keys pay for, and begin or end one if need be.

        Returns False when the keys do not fit with `most` homes; then nothing may be inserted.
        """
        if self.is_growing:
            self.grow(keys * BUCKETS_PER_KEY, gone=gone)
        most = self._most if most is None else min(most, self._most)
        while not self.has_room(keys):
            if self.is_growing:
                self.grow(self.homes, gone=gone)
            elif self.homes < most:
                self._begin(keys, most)
            else:
                return False
        if not self.is_growing and self.rows + keys > self._wide and self.homes < most:
            self._begin(keys, most)
        return True

    def grow(self, count: int, *, gone: int = -1) -> int:
        """Move that many buckets, if there are so many to move; return how many were moved."""
        moved = int(buckets.grow(self.slots, count, self._mask, gone))
        if not self.slots[BORDER]:
            self.is_growing = False
            self._set_limits()
        return moved

    def _begin(self, keys: int, most: int) -> None:
        rows = ROWS * self._limit * GROW_AT
        wanted = max(self.homes * self._growth, (self.rows + keys) / rows)
        self._use(min(int(wanted) + 1, most))
        self.slots[BORDER] = 1 << 32
        self.is_growing = True

    def _use(self, homes: int) -> None:
        self.slots = self._reserve[: buckets.words(homes)]
        self.slots[WIDER] = homes
        if not self._is_huge and self.nbytes >= HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
            self._memory.madvise(mmap.MADV_HUGEPAGE)
            self._is_huge = True

    def _set_limits(self) -> None:
        self._full = int(self.slots[HOMES] * ROWS * self._limit)
        self._wide = int(self._full * GROW_AT)
