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


@njit(nogil=True, cache=True)
def shingles(tokens, min_distinct):
    """Return (keys int64, masked bool), both of shape (max(n - 9, 0),), for uint32 tokens (n,)."""
    total = len(tokens)
    count = max(total - _K + 1, 0)
    keys = np.empty(count, np.int64)
    masked = np.zeros(count, np.bool_)
    if count == 0:
        return keys, masked
    p2 = np.empty(total - 1, np.uint64)
    for i in range(total - 1):
        p2[i] = np.uint64(tokens[i]) * _B1 + np.uint64(tokens[i + 1])
    p4 = np.empty(total - 3, np.uint64)
    for i in range(total - 3):
        p4[i] = p2[i] * _B2 + p2[i + 2]
    for i in range(count):
        value = (p4[i] * _B4 + p4[i + 4]) * _B2 + p2[i + 8]
        value = (value ^ (value >> _S)) * _M1
        value = (value ^ (value >> _S)) * _M2
        keys[i] = np.int64(value ^ (value >> _S))
    _mask_repetitive(tokens, min_distinct, masked)
    return keys, masked


@njit(nogil=True, cache=True)
def _mask_repetitive(tokens, min_distinct, masked):
    total = len(tokens)
    distance = np.full(total, _K, np.int8)
    for lag in range(_K - 1, 0, -1):
        for i in range(lag, total):
            if tokens[i] == tokens[i - lag]:
                distance[i] = lag
    for i in range(len(masked)):
        distinct = 0
        for offset in range(_K):
            distinct += distance[i + offset] > offset
        masked[i] = distinct < min_distinct
