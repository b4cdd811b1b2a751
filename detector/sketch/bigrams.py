"""Bigrams: two neighbouring tokens as one key, for how alike two whole texts are.

A shingle of 10 tokens is lost with each of its tokens; of a text in which every eighth token was
replaced none is left, but three of four bigrams are.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from detector.model import Hashes
from detector.sketch.header import SketchHeader
from detector.sketch.minhash import signatures
from detector.sketch.shingle import BASE, MIX_1, MIX_2, Keys

BIGRAM_TOKENS: Final = 2

SAMPLE_SHIFT: Final = 62
"""Bigrams whose key has only zeros from this bit on are sampled: one in four, the same ones in
every text. A sketch of them takes a quarter of the time; 128 bigrams leave 32, enough to name a
candidate, which is then compared whole."""


def bigram_keys(tokens: Hashes) -> Keys:
    """Return the key of every bigram, shape (max(n - 1, 0),), in the order of the text."""
    words = tokens.astype(np.uint64)
    value = words[:-1] * np.uint64(BASE) + words[1:]
    value = (value ^ (value >> np.uint64(33))) * np.uint64(MIX_1)
    value = (value ^ (value >> np.uint64(33))) * np.uint64(MIX_2)
    return (value ^ (value >> np.uint64(33))).view(np.int64)


def sampled_sketch(tokens: Hashes, salt: np.uint32, header: SketchHeader) -> NDArray[np.uint32]:
    """Return the sketch of the sampled bigrams, their hashes combined with `salt`, (num_perm,)."""
    keys = bigram_keys(tokens)
    kept = keys[keys.view(np.uint64) >> np.uint64(SAMPLE_SHIFT) == 0] ^ np.int64(salt)
    values: NDArray[np.uint32] = signatures(kept, np.array([0, len(kept)]), header)[0]
    return values


def jaccard_of(first: Keys, second: Keys) -> float:
    """Return the Jaccard similarity of two sets of distinct keys; that of empty sets is 0."""
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / max(len(first) + len(second) - shared, 1)
