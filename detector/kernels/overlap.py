"""How many keys two sequences have in common, by a small table of one of them (numba).

For a thousand keys that takes a fifth of what sorting both and searching takes.
"""

import numpy as np

from detector.kernels.cache import njit

_WORD = 64
_FILTER_BITS = 14
_FILTER_SHIFT = np.uint64(_WORD - _FILTER_BITS)


@njit(nogil=True, cache=True)
def held(keys, asked):
    """Return how many of the keys that are asked for, repeats included, are among `keys`."""
    asked = _likely(asked, keys)
    keys = _likely(keys, asked)
    places, shift = _room(len(keys))
    for i in range(len(keys)):
        places[_place(places, shift, keys, keys[i])] = i + 1
    count = 0
    for i in range(len(asked)):
        count += places[_place(places, shift, keys, asked[i])] != 0
    return count


@njit(nogil=True, cache=True)
def _likely(keys, others):
    """Return the keys that may be among others: of a thousand that are not, one in sixteen."""
    seen = np.zeros(1 << _FILTER_BITS, np.bool_)
    for key in others:
        seen[np.uint64(key) >> _FILTER_SHIFT] = True
    likely = np.empty_like(keys)
    count = 0
    for key in keys:  # without a branch: which ones are likely is not predictable
        likely[count] = key
        count += seen[np.uint64(key) >> _FILTER_SHIFT]
    return likely[:count]


@njit(nogil=True, cache=True)
def jaccard(first, second):
    """Return the Jaccard similarity of two sets of keys, which may repeat; 0 of empty ones."""
    keys = np.concatenate((first, second))
    places, shift = _room(len(keys))
    distinct = 0
    for i in range(len(first)):
        at = _place(places, shift, keys, keys[i])
        distinct += places[at] == 0
        places[at] = i + 1
    shared = 0
    for i in range(len(first), len(keys)):  # what is found stands for the second set from now on
        at = _place(places, shift, keys, keys[i])
        distinct += places[at] == 0
        shared += (places[at] > 0) & (places[at] <= len(first))
        places[at] = i + 1
    return shared / max(distinct, 1)


@njit(nogil=True, cache=True)
def _room(keys):
    """Return (places, shift): a place holds 1 + the position of a key, 0 if none.

    At most half of the places will.
    """
    bits = 1
    while (1 << bits) < 2 * keys:
        bits += 1
    return np.zeros(1 << bits, np.int32), np.uint64(_WORD - bits)


@njit(nogil=True, cache=True, inline="always")
def _place(places, shift, keys, key):
    """Return where a key stands, or the empty place where it would."""
    at = np.int64(np.uint64(key) >> shift)
    while places[at] != 0 and keys[places[at] - 1] != key:
        at = (at + 1) & (len(places) - 1)
    return at
