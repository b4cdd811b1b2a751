"""Shingle keys and the low-complexity mask in one pass (numba, bit-identical to the reference)."""

import numpy as np

from detector.kernels.cache import njit
from detector.sketch.shingle import BASE, MIX_1, MIX_2, SHINGLE_TOKENS

_B1 = np.uint64(BASE)
_B2 = np.uint64(BASE**2 & ((1 << 64) - 1))
_B4 = np.uint64(BASE**4 & ((1 << 64) - 1))
_M1 = np.uint64(MIX_1)
_M2 = np.uint64(MIX_2)
_S = np.uint64(33)
_K = SHINGLE_TOKENS
_BLOCK = 512  # 8 KiB of intermediate values: stays in the L1 cache


@njit(nogil=True, cache=True)
def shingles(tokens, min_distinct):
    """Return (keys int64, masked bool), both of shape (max(n - 9, 0),), for uint32 tokens (n,)."""
    total = len(tokens)
    count = max(total - _K + 1, 0)
    keys = np.empty(count, np.int64)
    masked = np.zeros(count, np.bool_)
    if count == 0:
        return keys, masked
    fill_keys(tokens, total, keys)
    repeats = np.empty(total, np.uint8)
    count_repeats(tokens, total, repeats)
    for i in range(count):
        # what repeats nothing is distinct; only where that does not suffice, compare
        if repeats[i] > _K - min_distinct:
            masked[i] = is_repetitive(tokens, i, min_distinct)
    return keys, masked


@njit(nogil=True, cache=True)
def keys_of(tokens):
    """Return the key of every shingle, shape (max(n - 9, 0),), for uint32 tokens (n,)."""
    keys = np.empty(max(len(tokens) - _K + 1, 0), np.int64)
    if len(keys):
        fill_keys(tokens, len(tokens), keys)
    return keys


@njit(nogil=True, cache=True)
def fill_keys(tokens, total, keys):
    """Write the key of every shingle of tokens[:total], at least 10, to the start of `keys`."""
    pairs = np.empty(_BLOCK + 8, np.uint64)
    fours = np.empty(_BLOCK + 4, np.uint64)
    for begin in range(0, total - _K + 1, _BLOCK):
        count = min(_BLOCK, total - _K + 1 - begin)
        for i in range(count + 8):
            pairs[i] = np.uint64(tokens[begin + i]) * _B1 + np.uint64(tokens[begin + i + 1])
        for i in range(count + 4):
            fours[i] = pairs[i] * _B2 + pairs[i + 2]
        for i in range(count):
            value = (fours[i] * _B4 + fours[i + 4]) * _B2 + pairs[i + 8]
            value = (value ^ (value >> _S)) * _M1
            value = (value ^ (value >> _S)) * _M2
            keys[begin + i] = np.int64(value ^ (value >> _S))


@njit(nogil=True, cache=True)
def count_repeats(hashes, total, repeats):
    """Set repeats[i] to how many of the 10 hashes from i on equal one of the 9 before themselves.

    Slices, one lag at a time: in this form the comparison vectorises wherever it is inlined.
    """
    for i in range(total):
        repeats[i] = 0
    for lag in range(1, _K):
        later = hashes[lag:total]
        earlier = hashes[: total - lag]
        marks = repeats[lag:total]
        for i in range(len(later)):
            marks[i] |= later[i] == earlier[i]
    for i in range(total - _K + 1):
        count = np.uint8(0)
        for j in range(_K):
            count = np.uint8(count + repeats[i + j])
        repeats[i] = count


@njit(nogil=True, cache=True)
def is_repetitive(hashes, at, min_distinct):
    """Tell whether fewer than `min_distinct` of the 10 hashes from `at` on are distinct."""
    distinct = _K
    for i in range(at + 1, at + _K):
        for j in range(at, i):
            if hashes[i] == hashes[j]:
                distinct -= 1
                break
    return distinct < min_distinct
