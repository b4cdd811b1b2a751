"""Bigrams and the sketch of a sample of them (numba, as in `detector/sketch/bigrams.py`)."""

import numpy as np

from detector.kernels.cache import njit
from detector.kernels.minhash import lower
from detector.sketch.bigrams import SAMPLE_SHIFT
from detector.sketch.minhash import EMPTY_VALUE
from detector.sketch.shingle import BASE, MIX_1, MIX_2

_B = np.uint64(BASE)
_M1 = np.uint64(MIX_1)
_M2 = np.uint64(MIX_2)
_S = np.uint64(33)
_SAMPLE = np.uint64(SAMPLE_SHIFT)
_EMPTY = np.uint32(EMPTY_VALUE)
_BLOCK = 2048  # hashes of a block stay in the L1 cache


@njit(nogil=True, cache=True, inline="always")
def _key(first, second):
    value = np.uint64(first) * _B + np.uint64(second)
    value = (value ^ (value >> _S)) * _M1
    value = (value ^ (value >> _S)) * _M2
    return value ^ (value >> _S)


@njit(nogil=True, cache=True)
def bigram_keys(tokens):
    """Return the key of every bigram, shape (max(n - 1, 0),), for uint32 tokens (n,)."""
    keys = np.empty(max(len(tokens) - 1, 0), np.int64)
    for i in range(len(keys)):
        keys[i] = np.int64(_key(tokens[i], tokens[i + 1]))
    return keys


@njit(nogil=True, cache=True)
def sampled_sketch(tokens, salt, a, b):
    """Return the sketch of the sampled bigrams, shape (len(a),), hashes combined with `salt`."""
    values = np.full(len(a), _EMPTY, np.uint32)
    block = np.empty(_BLOCK + 1, np.uint32)
    filled = 0
    for i in range(len(tokens) - 1):
        key = _key(tokens[i], tokens[i + 1])
        block[filled] = np.uint32(key) ^ salt
        filled += key >> _SAMPLE == 0
        if filled == _BLOCK:
            lower(values, block[:filled], a, b)
            filled = 0
    lower(values, block[:filled], a, b)
    return values
