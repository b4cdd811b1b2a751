"""Estimates from our sketches are as good as datasketch's, and LSH finds what its curve says."""

import datasketch
import numpy as np
import pytest
import xxhash
from numpy.typing import NDArray

from detector.index.bands import BandIndex
from detector.kernels import minhash as kernel
from detector.kernels.shingle import shingles
from detector.model import Hashes
from detector.sketch.batch import offsets_of
from detector.sketch.header import SketchHeader
from detector.sketch.lsh import best_shape
from detector.sketch.minhash import Sketches, jaccard
from detector.sketch.shingle import SHINGLE_TOKENS, Keys

HEADER = SketchHeader()

SLACK = 1.1
"""Two samples of 400 errors of the same law differ by less than this in their RMSE: the standard
deviation of an RMSE of n errors is RMSE / sqrt(2 n), so this is two of a difference."""

PAIRS = 500
THRESHOLD = 0.5


def sketched(texts: list[Hashes]) -> tuple[list[Keys], Sketches]:
    """Return the distinct shingles of each text and the sketches of all."""
    keys = [np.unique(shingles(each, 1)[0]) for each in texts]
    offsets = offsets_of(np.array([len(each) for each in keys]))
    return keys, Sketches(HEADER, kernel.signatures(np.concatenate(keys), offsets, HEADER))


def theirs(tokens: Hashes) -> datasketch.MinHash:
    """Return datasketch's own sketch of the 10-grams' bytes, made as its documentation says."""
    raw = tokens.astype("<u4").tobytes()
    sketch = datasketch.MinHash(num_perm=128, hashfunc=xxhash.xxh32_intdigest)
    width = 4 * SHINGLE_TOKENS
    sketch.update_batch([raw[at : at + width] for at in range(0, len(raw) - width + 1, 4)])
    return sketch


def jaccard_exactly(first: Keys, second: Keys) -> float:
    shared = len(np.intersect1d(first, second, assume_unique=True))
    return shared / (len(first) + len(second) - shared)


def copies(
    draw: np.random.Generator, count: int, *, tokens: int, share: float
) -> tuple[list[Hashes], list[Hashes]]:
    """Return texts, and copies of them in which a share of the tokens is replaced."""
    originals = list(draw.integers(0, 1 << 32, (count, tokens), dtype=np.uint32))
    edited = []
    for text in originals:
        copy = text.copy()
        at = draw.choice(tokens, round(share * tokens), replace=False)
        copy[at] = draw.integers(0, 1 << 32, len(at), dtype=np.uint32)
        edited.append(copy)
    return originals, edited


def rmse(estimates: NDArray[np.float64], exact: NDArray[np.float64]) -> float:
    return float(np.sqrt(np.mean((estimates - exact) ** 2)))


@pytest.mark.parametrize(("tokens", "share"), [(40, 0.03), (130, 0.035), (1_000, 0.035)])
def test_the_error_of_an_estimate_is_no_worse_than_datasketch(tokens: int, share: float) -> None:
    draw = np.random.default_rng([tokens, 5])
    first, second = copies(draw, 400, tokens=tokens, share=share)
    mine, ours = sketched(first)
    other, also_ours = sketched(second)
    exact = np.array([jaccard_exactly(a, b) for a, b in zip(mine, other, strict=True)])
    assert 0.4 < exact.mean() < 0.7
    their = np.array([theirs(a).jaccard(theirs(b)) for a, b in zip(first, second, strict=True)])
    error = rmse(jaccard(ours, also_ours), exact)
    assert error <= SLACK * rmse(their, exact)
    assert error <= SLACK * np.sqrt(np.mean(exact * (1 - exact)) / HEADER.num_perm)


def test_the_same_hashes_give_the_same_estimates_as_datasketch() -> None:
    first, second = copies(np.random.default_rng(6), 50, tokens=300, share=0.04)
    mine, ours = sketched(first)
    other, also_ours = sketched(second)
    for at, estimate in enumerate(jaccard(ours, also_ours)):
        pair = []
        for keys in (mine[at], other[at]):
            sketch = datasketch.MinHash(num_perm=128, seed=1, hashfunc=int)
            sketch.update_batch((keys & 0xFFFFFFFF).tolist())
            pair.append(sketch)
        assert pair[0].jaccard(pair[1]) == estimate


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2])
def test_lsh_finds_edited_copies_as_often_as_its_curve_says(share: float) -> None:
    """500 pairs; the mean over 20 draws of the permutations, so that chance stays below 2 points.

    The curve is taken at the exact Jaccard similarity of each pair.
    """
    draw = np.random.default_rng(round(100 * share))
    first, second = copies(draw, PAIRS, tokens=400, share=share)
    shape = best_shape(THRESHOLD, HEADER.num_perm)
    found = []
    sides = [[np.unique(shingles(each, 1)[0]) for each in side] for side in (first, second)]
    exact = [jaccard_exactly(a, b) for a, b in zip(*sides, strict=True)]
    expected = float(np.mean([shape.probability(each) for each in exact]))
    for seed in range(1, 21):
        header = SketchHeader(seed=seed)
        values = [
            kernel.signatures(
                np.concatenate(side), offsets_of(np.array([len(each) for each in side])), header
            )
            for side in sides
        ]
        index = BandIndex(header, shape)
        index.insert(Sketches(header, values[0]), np.zeros(PAIRS, np.int64))
        found.append(
            np.mean(
                [
                    at in index.candidates(Sketches(header, row[None]))
                    for at, row in enumerate(values[1])
                ]
            )
        )
    assert np.mean(found) == pytest.approx(expected, abs=0.02)
    assert found[0] == pytest.approx(expected, abs=0.05)
