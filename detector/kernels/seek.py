"""Where the keys of a block belong in a table of buckets, sought in rounds (numba).

All keys of a block take one step together, so whether a key is there, or its bucket full, never
decides a branch: mispredicted, those cost more than everything else (measured: a quarter to a third
less time per key, with the table in cache).
"""

import numpy as np

from detector.kernels.buckets import STEP, home
from detector.kernels.cache import njit
from detector.kernels.line import KEYS, VALUES, look, lowest
from detector.kernels.prefetch import prefetch

BLOCK = 32
"""Keys that are sought together."""

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
    """Fetch the lines of the used keys of a block, the header's for others, which is at hand."""
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
    last = np.uint64(len(table)) - STEP
    rows, buckets, waiting = found[0], found[1], found[2]
    left = 0
    for i in range(end - begin):
        rows[i] = NOWHERE
        buckets[i] = home(keys[begin + i], table)
        waiting[left] = i
        left += use[begin + i]
    while left:
        asked = left
        left = 0
        for n in range(asked):
            i = waiting[n]
            bucket = buckets[i]
            seen = look(table, bucket, mask, keys[begin + i] & mask[0], gone)
            free = (seen >> _SECOND) & _VALUES
            known = (seen & _KEYS) != _NONE
            row = (bucket + lowest(free) - _ONE) * np.uint64(free != _NONE)
            row = rows[i] + row * np.uint64(rows[i] == NOWHERE)
            rows[i] = row * np.uint64(not known)
            buckets[i] = bucket + STEP
            waiting[left] = i
            left += not (known | ((seen & _VALUES) != _NONE) | (bucket >= last))
