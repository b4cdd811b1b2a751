"""MinHash sketches in the scheme `affine32` of datasketch 2: definition and numpy reference.

Value p of a sketch is the smallest a[p] * h + b[p] mod 2^32 over all shingles, where h is the
shingle's 32-bit hash after MurmurHash3's 32-bit finalizer. The 32-bit hash of a shingle is the low
half of its key: the finalizer of the key has mixed all 64 bits into it, and the index addresses by
the high half. datasketch computes the same sketch when it is given these 32-bit hashes and a hash
function that returns its argument.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from detector.sketch.header import SketchHeader
from detector.sketch.shingle import Keys

Signatures = NDArray[np.uint32]
Offsets = NDArray[np.int64]

EMPTY_VALUE = np.uint32(0xFFFFFFFF)
"""Every value of the sketch of an empty set, the same as in datasketch."""

FMIX_1 = 0x85EBCA6B
FMIX_2 = 0xC2B2AE35
"""Multipliers of MurmurHash3's 32-bit finalizer (Appleby); the shifts are 16, 13 and 16."""


@dataclass(frozen=True, slots=True)
class Sketches:
    """Sketches that share one header: `values` has shape (sketches, num_perm)."""

    header: SketchHeader
    values: Signatures


@lru_cache(maxsize=8)
def permutations(header: SketchHeader) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return (a, b), each of shape (num_perm,): odd multipliers, then increments.

    They are drawn in datasketch's order from numpy's legacy generator, whose stream is frozen, and
    are read-only: drawing takes longer than sketching a response.
    """
    draw = np.random.RandomState(header.seed)
    a = draw.randint(0, 1 << 31, header.num_perm, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    b = draw.randint(0, 1 << 32, header.num_perm, dtype=np.uint32)
    a.flags.writeable = b.flags.writeable = False
    return a, b


def shingle_hashes(keys: Keys) -> NDArray[np.uint32]:
    """Return the 32-bit hash of every shingle key: its low half."""
    return keys.astype(np.uint32)


def premix(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Apply MurmurHash3's 32-bit finalizer, a bijection."""
    hashes = (hashes ^ (hashes >> np.uint32(16))) * np.uint32(FMIX_1)
    hashes = (hashes ^ (hashes >> np.uint32(13))) * np.uint32(FMIX_2)
    return hashes ^ (hashes >> np.uint32(16))


def signatures(keys: Keys, offsets: Offsets, header: SketchHeader) -> Signatures:
    """Return one sketch per set, shape (sets, num_perm); set i is keys[offsets[i]:offsets[i+1]]."""
    a, b = permutations(header)
    values = np.full((len(offsets) - 1, header.num_perm), EMPTY_VALUE, np.uint32)
    for at in range(len(values)):
        begin, end = offsets[at], offsets[at + 1]
        if begin < end:
            mixed = premix(shingle_hashes(keys[begin:end]))
            values[at] = (mixed[:, None] * a + b).min(axis=0)
    return values


def jaccard(first: Sketches, second: Sketches) -> NDArray[np.float64]:
    """Estimate the Jaccard similarity of each row of `first` with the same row of `second`.

    Either side may have a single row, which is compared with all of the other's. Two empty sets
    count as equal. Raises SketchError for unlike headers.
    """
    first.header.require_same(second.header)
    equal: NDArray[np.float64] = np.mean(first.values == second.values, axis=1)
    return equal


def merge(first: Sketches, second: Sketches) -> Sketches:
    """Return the sketches of the unions, row by row. Raises SketchError for unlike headers."""
    first.header.require_same(second.header)
    return Sketches(first.header, np.minimum(first.values, second.values))
