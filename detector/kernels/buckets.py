"""Hash tables of 64-byte buckets: what the tables of postings and of tenants share (numba).

A table is one int64 array; a bucket is one cache line of four rows of two words, key word and value
word. A row is empty when its value word is 0. A key's home bucket is its high 32 bits, stirred and
scaled to the number of homes, so a table grows by any factor, and growth and sweep walk both tables
in order. Unstirred, the smallest keys, which winnowing picks, would fill one part of the table.
A key lies in its home bucket or, where that is full, in the next one that is not; the buckets
behind the last home are padding instead of a wraparound.

Looking at a whole line at once needs no branch per row: rows probed one by one cost twice as much
here, nearly all of it mispredicted branches (measured: 60 against 30 ns with the table in cache).
"""

import numpy as np

from detector.kernels.cache import njit

ROWS = 4
"""Rows of two int64 in a cache line of 64 bytes."""

STEP = np.uint64(2 * ROWS)
"""Words in a bucket."""

PADDING = 1_024
"""Buckets behind the last home; far more than the longest overflow seen at the load limits."""

_HALF = np.uint64(32)

_STIR = np.uint64(0x9E3779B1)
"""Odd, so it loses nothing; 2^32 divided by the golden ratio spreads any dense range evenly."""

_LOW = np.uint64(0xFFFFFFFF)


@njit(nogil=True, cache=True, inline="always")
def home(key, homes):
    """Return the index of the first word of the key's home bucket."""
    stirred = ((np.uint64(key) >> _HALF) * _STIR) & _LOW
    return ((stirred * np.uint64(homes)) >> _HALF) * STEP


def new_table(homes: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return an empty table on a cache-line boundary, so that one bucket is one line."""
    words = (homes + PADDING) * int(STEP)
    raw = np.zeros(words + int(STEP), np.int64)
    ahead = (-raw.ctypes.data // raw.itemsize) % int(STEP)
    return raw[ahead : ahead + words]
