"""Where the keys of a block belong in a table of buckets, sought in rounds (numba).

All keys of a block take one step together, so whether a key is there, or its bucket full, never
decides a branch: mispredicted, those cost more than everything else (measured with a fifth to a
third of the homes full: a quarter to two fifths less time per key, in cache and in memory).
"""

import numpy as np

from detector.kernels.buckets import STEP, home
from detector.kernels.cache import njit
from detector.kernels.line import KEYS, VALUES, look, lowest
from detector.kernels.prefetch import prefetch

BLOCK = 512
"""Keys that are sought together, while the lines of as many more are on their way: each block pays
for its last rounds, in which few keys wait for memory (measured in turns on a window of 4 million
postings, 1,000 keys: 47, 45, 43 and 43 us to probe with 64, 128, 256 and 512, and 79, 74, 73 and
71 us to learn; with 8,000 keys 256 and 512 are best, and alike)."""

ROUND_AHEAD = 16
"""Keys asked for ahead in the later rounds, in which few keys are left."""

NOWHERE = np.uint64(0)
"""No row: a table begins with its header."""

_KEYS = np.uint64(KEYS)
_VALUES = np.uint64(VALUES)
_NONE = np.uint64(0)
_ONE = np.uint64(1)
_SECOND = np.uint64(8)


@njit(nogil=True, cache=True)
def room():
    """Return what `seek` works in; its first row holds what it finds."""
    return np.empty((3, BLOCK), np.uint64)


@njit(nogil=True, cache=True)
def fetch(table, keys, use, begin):
    """Fetch the lines of the used keys of a block, the header's for others, which is at hand.

    A block ahead of its use: seeking goes faster than memory answers.
    """
    for i in range(begin, min(begin + BLOCK, len(keys))):
        prefetch(table, home(keys[i], table) * np.uint64(use[i]))  # type: ignore[call-arg]


@njit(nogil=True, cache=True)
def seek(table, keys, use, begin, end, mask, gone, found):
    """Set found[0, i - begin] to the first free row on the way of each used key of [begin, end).

    NOWHERE for keys that are not used and those of which the table may hold a row. Rows and keys
    are compared under `mask`, as `look` takes it; a row whose value word is then `gone` or less is
    free, and the way of a key ends at a bucket with a value word of 0. Whoever inserts one key
    must look whether the row of the next one is still free.
    """
    rows, buckets, waiting = found[0], found[1], found[2]
    left = 0
    for n in range(end - begin):
        i = begin + n
        bucket = home(keys[i], table)
        row, unknown, ends = _step(table, bucket, keys[i], mask, gone)
        unknown &= np.uint64(use[i])
        rows[n] = row * unknown
        buckets[left] = bucket + STEP
        waiting[left] = n
        left += int(unknown & ~ends)
    while left:
        left = _next_round(table, keys[begin:end], left, mask, gone, found)


@njit(nogil=True, cache=True)
def _next_round(table, keys, asked, mask, gone, found):
    """Let the waiting keys take their next step; return how many still wait."""
    rows, buckets, waiting = found[0], found[1], found[2]
    for n in range(min(asked, ROUND_AHEAD)):
        prefetch(table, buckets[n])  # type: ignore[call-arg]
    left = 0
    for n in range(asked):
        if n + ROUND_AHEAD < asked:
            prefetch(table, buckets[n + ROUND_AHEAD])  # type: ignore[call-arg]
        i, bucket = waiting[n], buckets[n]
        row, unknown, ends = _step(table, bucket, keys[i], mask, gone)
        rows[i] = (rows[i] + row * np.uint64(rows[i] == NOWHERE)) * unknown
        buckets[left] = bucket + STEP
        waiting[left] = i
        left += int(unknown & ~ends)
    return left


@njit(nogil=True, cache=True, inline="always")
def _step(table, bucket, key, mask, gone):
    """Return (first free row of a bucket, 1 if the key is not in it, 1 if its way ends here)."""
    seen = look(table, bucket, mask, key & mask[0], gone)
    free = (seen >> _SECOND) & _VALUES
    row = (bucket + lowest(free) - _ONE) * np.uint64(free != _NONE)
    unknown = np.uint64((seen & _KEYS) == _NONE)
    last = np.uint64(len(table)) - STEP
    return row, unknown, np.uint64(((seen & _VALUES) != _NONE) | (bucket >= last))
