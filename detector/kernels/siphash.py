"""SipHash-2-4 of many 64-bit words (numba, bit-identical to `detector/sketch/siphash.py`).

Measured: 6 to 7 ns a word, beside about 100 ns that the core takes for a token.
"""

import numpy as np

from detector.kernels.cache import njit
from detector.sketch.siphash import COMPRESSIONS, FINALIZATIONS, LENGTH_BLOCK, initial_state

_LENGTH = np.uint64(LENGTH_BLOCK)
_LAST = np.uint64(0xFF)
_U13, _U16, _U17, _U21, _U32 = (np.uint64(bits) for bits in (13, 16, 17, 21, 32))
_D13, _D16, _D17, _D21 = (np.uint64(64 - bits) for bits in (13, 16, 17, 21))


@njit(nogil=True, cache=True, inline="always")
def _round(a, b, c, d):
    a += b
    c += d
    b = ((b << _U13) | (b >> _D13)) ^ a
    d = ((d << _U16) | (d >> _D16)) ^ c
    a = (a << _U32) | (a >> _U32)
    c += b
    a += d
    b = ((b << _U17) | (b >> _D17)) ^ c
    d = ((d << _U21) | (d >> _D21)) ^ a
    c = (c << _U32) | (c >> _U32)
    return a, b, c, d


@njit(nogil=True, cache=True)
def tags(state, words):
    """Return the tag of every word, shape (len(words),), under the state that a key gives."""
    tagged = np.empty(len(words), np.int64)
    for i in range(len(words)):
        word = np.uint64(words[i])
        a, b, c, d = state[0], state[1], state[2], state[3] ^ word
        for _ in range(COMPRESSIONS):
            a, b, c, d = _round(a, b, c, d)
        a ^= word
        d ^= _LENGTH
        for _ in range(COMPRESSIONS):
            a, b, c, d = _round(a, b, c, d)
        a ^= _LENGTH
        c ^= _LAST
        for _ in range(FINALIZATIONS):
            a, b, c, d = _round(a, b, c, d)
        tagged[i] = np.int64(a ^ b ^ c ^ d)
    return tagged


def tagger(key):
    """Return what makes the tags of words under a key."""
    state = initial_state(key)
    return lambda words: tags(state, words)
