"""Which design finds a planted run of which length: `python -m tests.bench.recall_table`.

Pairs of unrelated Zipf texts, one run of L tokens copied from the first into the second at random
places. A shingle design finds the pair when both pick a common shingle, LSH when they are
candidates. Everything is seeded; the table is the one in docs/sketches.md.
"""

import argparse
from collections.abc import Callable
from functools import partial

import datasketch
import numpy as np
from numpy.typing import NDArray

from detector.backend import NumbaBackend
from detector.benchmarks.workload import VOCABULARY
from detector.kernels.bands import band_keys
from detector.sketch.batch import Fingerprints, TokenBatch
from detector.sketch.header import SketchHeader
from detector.sketch.lsh import best_shape
from detector.sketch.minhash import Signatures, permutations

LENGTHS = (10, 12, 16, 17, 24, 25, 32, 64, 128, 256, 1000)
SIZES = {1_000: 300, 8_000: 100}
"""Tokens of a response, and how many pairs of them."""

HEADER = SketchHeader()
BACKEND = NumbaBackend()

Found = NDArray[np.bool_]


def texts(draw: np.random.Generator, count: int, size: int) -> NDArray[np.uint32]:
    ranks = np.floor(np.float64(VOCABULARY) ** draw.random((count, size)))
    keyed = draw.permutation(1 << 20)[: VOCABULARY + 1].astype(np.uint32)
    return keyed[ranks.astype(np.int64)]


def planted(size: int, pairs: int, length: int) -> tuple[TokenBatch, TokenBatch]:
    """Return the sources and, at the same numbers, the sinks."""
    draw = np.random.default_rng([size, length])
    sources, sinks = texts(draw, pairs, size), texts(draw, pairs, size)
    for source, sink in zip(sources, sinks, strict=True):
        begin, at = draw.integers(0, size - length + 1, 2)
        sink[at : at + length] = source[begin : begin + length]
    offsets = np.arange(0, pairs * size + 1, size, dtype=np.int64)
    return TokenBatch(sources.ravel(), offsets), TokenBatch(sinks.ravel(), offsets)


def picked(batch: TokenBatch, window: int) -> Fingerprints:
    return BACKEND.fingerprints(batch, window=window, min_distinct=6)


def by_shingles(sources: TokenBatch, sinks: TokenBatch, *, window: int) -> Found:
    first, second = picked(sources, window), picked(sinks, window)
    return np.array(
        [
            len(
                np.intersect1d(
                    first.keys[first.offsets[i] : first.offsets[i + 1]],
                    second.keys[second.offsets[i] : second.offsets[i + 1]],
                )
            )
            > 0
            for i in range(len(sources))
        ]
    )


def sketches(batch: TokenBatch) -> Signatures:
    found = picked(batch, 1)
    return BACKEND.signatures(found.keys, found.offsets, HEADER)


def by_bands(sources: TokenBatch, sinks: TokenBatch, *, threshold: float) -> Found:
    shape = best_shape(threshold, HEADER.num_perm)
    first, second = (
        band_keys(sketches(each), shape.bands, shape.rows) for each in (sources, sinks)
    )
    found: Found = (first == second).any(axis=1)
    return found


def by_ensemble(sources: TokenBatch, sinks: TokenBatch, *, threshold: float) -> Found:
    a, b = permutations(HEADER)
    size = int(sources.offsets[1]) - HEADER.k + 1

    def wrapped(batch: TokenBatch) -> list[datasketch.MinHash]:
        return [
            datasketch.MinHash(
                hashvalues=row, permutations=np.array([a, b]), scheme="affine32", seed=1
            )
            for row in sketches(batch)
        ]

    index = datasketch.MinHashLSHEnsemble(threshold=threshold, num_perm=128, num_part=16)
    index.index((at, sketch, size) for at, sketch in enumerate(wrapped(sources)))
    return np.array([at in index.query(sketch, size) for at, sketch in enumerate(wrapped(sinks))])


def designs() -> dict[str, Callable[[TokenBatch, TokenBatch], Found]]:
    rows: dict[str, Callable[[TokenBatch, TokenBatch], Found]] = {
        "every shingle": partial(by_shingles, window=1),
        **{f"winnow {w} (w + 9 = {w + 9})": partial(by_shingles, window=w) for w in (4, 8, 16)},
    }
    for threshold in (0.5, 0.2, 0.1, 0.05):
        shape = best_shape(threshold, HEADER.num_perm)
        name = f"LSH of whole responses, J >= {threshold} ({shape.bands} x {shape.rows})"
        rows[name] = partial(by_bands, threshold=threshold)
    for threshold in (0.1, 0.05):
        rows[f"LSH Ensemble, containment >= {threshold}"] = partial(
            by_ensemble, threshold=threshold
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, choices=sorted(SIZES), default=1_000)
    size = parser.parse_args().size
    print(f"| {size:,} tokens | {' | '.join(map(str, LENGTHS))} |")
    print("|---" * (len(LENGTHS) + 1) + "|")
    pairs = {length: planted(size, SIZES[size], length) for length in LENGTHS}
    for name, finds in designs().items():
        recall = [finds(*pairs[length]).mean() for length in LENGTHS]
        print(f"| {name} | {' | '.join(f'{share:.2f}' for share in recall)} |", flush=True)


if __name__ == "__main__":
    main()
