"""Shingles: every 10 consecutive token hashes become one 64-bit key (numpy reference).

The numba kernel in `detector/kernels/shingle.py` is bit-identical; a property test proves it.
"""

import numpy as np
from numpy.typing import NDArray

from detector.model import Hashes

SHINGLE_TOKENS = 10
"""Tokens in one shingle: the overlap length that public advice on these incidents alarms on."""

BASE = 0x0A7D3DA94ECDE8BB
"""Polynomial base, 3 mod 8, picked for its low 2-adic valuation (11): the worst pair of degenerate
shingles collides with probability 2^-53 instead of 2^-50 for the golden-ratio base (measured)."""

MIX_1 = 0xFF51AFD7ED558CCD
MIX_2 = 0xC4CEB9FE1A85EC53
"""Multipliers of MurmurHash3's 64-bit finalizer (Appleby): the raw polynomial's bit 0 is blind
to token order, and the index addresses by the high bits."""

Keys = NDArray[np.int64]
Mask = NDArray[np.bool_]

_MASK_64 = (1 << 64) - 1


def shingle_keys(token_hashes: Hashes) -> Keys:
    """Return the key of every shingle, shape (n - 9,), empty for fewer than 10 tokens.

    Log-step evaluation of sum h[i+j] * BASE^(9-j) mod 2^64, then the finalizer. Keys are signed
    so that numpy, numba and torch (which has no uint64 comparison) order them alike.
    """
    count = len(token_hashes) - SHINGLE_TOKENS + 1
    if count <= 0:
        return np.empty(0, np.int64)
    base_1 = np.uint64(BASE)
    base_2 = np.uint64(BASE**2 & _MASK_64)
    base_4 = np.uint64(BASE**4 & _MASK_64)
    p1 = token_hashes.astype(np.uint64)
    p2 = p1[:-1] * base_1 + p1[1:]
    p4 = p2[:-2] * base_2 + p2[2:]
    p8 = p4[:-4] * base_4 + p4[4:]
    return _finalize(p8[:count] * base_2 + p2[8 : 8 + count])


def distinct(keys: Keys) -> Keys:
    """Return the distinct keys in ascending order.

    np.unique does the same by hashing, which costs several times as much for a thousand keys.
    """
    ordered = np.sort(keys)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def _finalize(values: NDArray[np.uint64]) -> Keys:
    shift = np.uint64(33)
    values = (values ^ (values >> shift)) * np.uint64(MIX_1)
    values = (values ^ (values >> shift)) * np.uint64(MIX_2)
    return (values ^ (values >> shift)).view(np.int64)


def low_complexity(token_hashes: Hashes, min_distinct: int) -> Mask:
    """True where a shingle has fewer than `min_distinct` distinct tokens, shape (n - 9,).

    A token is new in the window that starts at i when its previous equal token lies before i, so
    counting distinct tokens needs only the distance to the previous equal token, up to 9.
    """
    total = len(token_hashes)
    count = total - SHINGLE_TOKENS + 1
    if count <= 0:
        return np.empty(0, np.bool_)
    distance = np.full(total, SHINGLE_TOKENS, np.int8)
    for lag in range(SHINGLE_TOKENS - 1, 0, -1):
        distance[lag:][token_hashes[lag:] == token_hashes[:-lag]] = lag
    distinct = np.zeros(count, np.int8)
    for offset in range(SHINGLE_TOKENS):
        distinct += distance[offset : offset + count] > offset
    return distinct < min_distinct
