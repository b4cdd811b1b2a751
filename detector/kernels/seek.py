"""Where the keys of a block belong in a table of buckets, sought in rounds (numba).

All keys of a block take one step together, so whether a key is there, or its bucket full, never
decides a branch: mispredicted, those cost more than everything else (measured with a fifth to a
third of the homes full: a quarter to two fifths less time per key, in cache and in memory).
"""

import numpy as np

from detector.kernels.buckets import BORDER, HOMES, STEP, WIDER, home, home_of
from detector.kernels.cache import njit
from detector.kernels.line import KEYS, VALUES, look, lowest

BLOCK = 512
"""Keys that are sought together: each block pays for its last rounds, in which few keys wait for
memory, and its lines have to stay in the cache until they are written to."""

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
    return np.empty((4, BLOCK), np.uint64)


@njit(nogil=True, cache=True)
def touch(table, buckets):
    """Bring the lines of some buckets into the cache; return their first words, all in one.

    Whoever keeps that keeps the compiler from leaving the reading out. Nothing but reads in a row,
    none of which needs another: the CPU has as many of them under way as it can. Prefetch
    instructions between the steps of the seeking cost more than they spare (measured: 1,000 keys in
    120 to 256 MB, 34 to 37 us with them, 19 to 21 so, 9 all in cache).
    """
    words = np.int64(0)
    for n in range(len(buckets)):
        words |= table[buckets[n]]
    return words


@njit(nogil=True, cache=True)
def bring(table, keys, buckets):
    """Bring the lines of the home buckets of up to BLOCK keys into the cache, `buckets` long."""
    for n in range(len(keys)):
        buckets[n] = home(keys[n], table)
    words = touch(table, buckets[: len(keys)])
    buckets[0] = words


@njit(nogil=True, cache=True)
def seek(table, keys, use, begin, end, mask, gone, found):
    """Set found[0, i - begin] to the first free row on the way of each used key of [begin, end).

    NOWHERE for keys that are not used and those of which the table may hold a row. Rows and keys
    are compared under `mask`, as `look` takes it; a row whose value word is then `gone` or less is
    free, and the way of a key ends at a bucket with a value word of 0. Whoever inserts one key
    must look whether the row of the next one is still free.
    """
    rows, buckets, waiting = found[0], found[1], found[2]
    keys, use = keys[begin:end], use[begin:end]
    count = np.uint64(len(keys))  # unsigned: no look whether a place counts from behind
    homes, wider = np.uint64(table[HOMES]), np.uint64(table[WIDER])
    border = np.uint64(table[BORDER])
    for n in range(count):  # of keys that are not used the header's line, which is at hand
        buckets[n] = home_of(keys[n], homes, wider, border) * np.uint64(use[n])
    found[3, 0] = touch(table, buckets[:count])
    left = _NONE
    for n in range(count):
        bucket = buckets[n]
        row, unknown, ends = _step(table, bucket, keys[n], mask, gone)
        unknown &= np.uint64(use[n])
        rows[n] = row * unknown
        buckets[left] = bucket + STEP
        waiting[left] = n
        left += unknown & ~ends
    while left:
        left = _next_round(table, keys, left, mask, gone, found)


@njit(nogil=True, cache=True)
def _next_round(table, keys, asked, mask, gone, found):
    """Let the waiting keys take their next step; return how many still wait."""
    rows, buckets, waiting = found[0], found[1], found[2]
    found[3, 0] = touch(table, buckets[:asked])
    left = _NONE
    for n in range(asked):
        i, bucket = waiting[n], buckets[n]
        row, unknown, ends = _step(table, bucket, keys[i], mask, gone)
        rows[i] = (rows[i] + row * np.uint64(rows[i] == NOWHERE)) * unknown
        buckets[left] = bucket + STEP
        waiting[left] = i
        left += unknown & ~ends
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
