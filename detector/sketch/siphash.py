"""SipHash-2-4 of 64-bit words: tags that only the holders of a key can make (numpy reference).

A shingle's key is made of hashed tokens by a public polynomial, so it must not leave a process. Its
tag may: without the key nobody can tell which shingle a tag stands for, nor make the tag of one.
The numba kernel in `detector/kernels/siphash.py` is bit-identical; a test proves it.
"""

import numpy as np
from numpy.typing import NDArray

from detector.sketch.shingle import Keys

KEY_BYTES = 16
"""Length of a SipHash key."""

INITIAL = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
"""The state before the key: "somepseudorandomlygeneratedbytes" (Aumasson and Bernstein, 2012)."""

LENGTH_BLOCK = 8 << 56
"""The last block of an 8-byte message: its length in the highest byte."""

COMPRESSIONS, FINALIZATIONS = 2, 4
"""Rounds for each block and at the end: the 2 and the 4 of SipHash-2-4."""

_Words = NDArray[np.uint64]


def initial_state(key: bytes) -> _Words:
    """Return the four words of the state under a key of 16 bytes."""
    low, high = np.frombuffer(key, "<u8").tolist()
    halves = (low, high, low, high)
    return np.array([word ^ half for word, half in zip(INITIAL, halves, strict=True)], np.uint64)


def tags(key: bytes, words: Keys) -> Keys:
    """Return SipHash-2-4 of every word as an 8-byte little-endian message."""
    message = words.view(np.uint64)
    state = [np.full(len(words), word, np.uint64) for word in initial_state(key)]
    for block in (message, np.uint64(LENGTH_BLOCK)):
        state[3] ^= block
        _rounds(state, COMPRESSIONS)
        state[0] ^= block
    state[2] ^= np.uint64(0xFF)
    _rounds(state, FINALIZATIONS)
    return (state[0] ^ state[1] ^ state[2] ^ state[3]).view(np.int64)


def _rounds(state: list[_Words], count: int) -> None:
    a, b, c, d = state
    for _ in range(count):
        a = a + b
        c = c + d
        b = _left(b, 13) ^ a
        d = _left(d, 16) ^ c
        a = _left(a, 32)
        c = c + b
        a = a + d
        b = _left(b, 17) ^ c
        d = _left(d, 21) ^ a
        c = _left(c, 32)
    state[:] = a, b, c, d


def _left(words: _Words, bits: int) -> _Words:
    return (words << np.uint64(bits)) | (words >> np.uint64(64 - bits))
