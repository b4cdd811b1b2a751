"""Looks the shingles of stored sequences up among the few of one response (numba).

Nearly every stored shingle is not of the response, so each is first asked of one bit for its high
key bits: at 16 bits for every shingle of the response 1 of 16 strangers goes on to the table.
"""

import numpy as np

from detector.kernels.cache import njit
from detector.kernels.shingle import fill_keys
from detector.sketch.shingle import SHINGLE_TOKENS

BITS_PER_KEY = 16
"""Bits of the filter for each shingle: 2 KB for a response of 1,000 tokens, 256 KB for the longest
part of one, so it stays in a core's cache."""

_K = SHINGLE_TOKENS


@njit(nogil=True, cache=True)
def table(keys, use):
    """Return (bits, slots, at): the filter, the keys by slot, and the position of each, -1 if none.

    Of equal keys the first position is kept. Only keys where `use` is True are in it.
    """
    size = 64
    while size < 2 * len(keys):
        size *= 2
    bits = np.zeros(size * BITS_PER_KEY // 2 // 64, np.uint64)
    slots = np.zeros(size, np.int64)
    at = np.full(size, -1, np.int32)
    shift = _shift(len(bits))
    for i in range(len(keys)):
        if not use[i]:
            continue
        high = np.uint64(keys[i]) >> shift
        bits[high >> np.uint64(6)] |= np.uint64(1) << (high & np.uint64(63))
        slot = keys[i] & (size - 1)
        while at[slot] >= 0 and slots[slot] != keys[i]:
            slot = (slot + 1) & (size - 1)
        if at[slot] < 0:
            slots[slot] = keys[i]
            at[slot] = i
    return bits, slots, at


@njit(nogil=True, cache=True)
def _shift(words):
    """Return by how much a key is shifted to address one bit of `words`, a power of two."""
    shift = np.uint64(58)
    while words > 1:
        words //= 2
        shift -= np.uint64(1)
    return shift


@njit(nogil=True, cache=True)
def hits(tokens, bits, slots, at):
    """Return (stored, response): where the shingles of `tokens` lie that are in the table.

    `stored` rises; both are int64 token offsets.
    """
    count = max(len(tokens) - _K + 1, 0)
    if count == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    keys = np.empty(count, np.int64)
    fill_keys(tokens, len(tokens), keys)
    shift = _shift(len(bits))
    maybe = np.empty(count, np.int32)
    found = 0
    for i in range(count):
        high = np.uint64(keys[i]) >> shift
        maybe[found] = i
        found += int((bits[high >> np.uint64(6)] >> (high & np.uint64(63))) & np.uint64(1))
    stored = np.empty(found, np.int64)
    response = np.empty(found, np.int64)
    last = len(slots) - 1
    written = 0
    for i in range(found):
        key = keys[maybe[i]]
        slot = key & last
        while at[slot] >= 0 and slots[slot] != key:
            slot = (slot + 1) & last
        if at[slot] >= 0:
            stored[written] = maybe[i]
            response[written] = at[slot]
            written += 1
    return stored[:written], response[:written]
