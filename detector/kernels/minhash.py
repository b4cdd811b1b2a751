"""MinHash sketches in bulk (numba, bit-identical to `detector/sketch/minhash.py`).

Permutations run in the outer loop over a block of one set's hashes that stays in the L1 cache: the
inner loop is then a chain of multiply, add and minimum on neighbouring values, which vectorises
(measured 11x faster than permutations inside).
"""

import numpy as np

from detector.kernels.cache import njit
from detector.sketch.batch import Offsets
from detector.sketch.header import SketchHeader
from detector.sketch.minhash import EMPTY_VALUE, FMIX_1, FMIX_2, Signatures, permutations
from detector.sketch.shingle import Keys, Mask

BLOCK = 2048
"""Hashes per block: 8 KiB of a 32 KiB L1 cache."""

_EMPTY = np.uint32(EMPTY_VALUE)
_M1 = np.uint32(FMIX_1)
_M2 = np.uint32(FMIX_2)
_S16 = np.uint32(16)
_S13 = np.uint32(13)


def signatures(
    keys: Keys, offsets: Offsets, header: SketchHeader, *, masked: Mask | None = None
) -> Signatures:
    """Return one sketch per set, shape (sets, num_perm); set i is keys[offsets[i]:offsets[i+1]].

    Masked keys are left out.
    """
    a, b = permutations(header)
    left_out = np.empty(0, np.bool_) if masked is None else masked
    values: Signatures = _signatures(keys, left_out, offsets, a, b)
    return values


@njit(nogil=True, cache=True)
def _signatures(keys, masked, offsets, a, b):
    sets = len(offsets) - 1
    values = np.full((sets, len(a)), _EMPTY, np.uint32)
    block = np.empty(BLOCK, np.uint32)
    for at in range(sets):
        following = offsets[at]
        while following < offsets[at + 1]:
            ends = min(following + BLOCK, offsets[at + 1])
            filled = ends - following
            if len(masked) == 0:
                for i in range(filled):
                    block[i] = np.uint32(keys[following + i])
            else:
                filled = 0
                for i in range(following, ends):
                    block[filled] = np.uint32(keys[i])
                    filled += not masked[i]
            following = ends
            lower(values[at], block[:filled], a, b)
    return values


@njit(nogil=True, cache=True)
def lower(values, block, a, b):
    """Lower the values of one sketch to what the 32-bit hashes in `block`, overwritten, give."""
    for i in range(len(block)):
        h = block[i]
        h = np.uint32((h ^ (h >> _S16)) * _M1)
        h = np.uint32((h ^ (h >> _S13)) * _M2)
        block[i] = h ^ (h >> _S16)
    for p in range(len(a)):
        factor = a[p]
        summand = b[p]
        least = values[p]
        for i in range(len(block)):
            least = min(least, np.uint32(factor * block[i] + summand))
        values[p] = least
