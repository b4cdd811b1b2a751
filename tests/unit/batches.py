"""Random and adversarial batches: ties, periods, short and empty sequences, extreme keys."""

import numpy as np
from numpy.typing import NDArray

from detector.backend import Backend
from detector.sketch.batch import Fingerprints, Shingles, TokenBatch, flatten, offsets_of
from detector.sketch.header import SketchHeader
from detector.sketch.minhash import signatures
from detector.sketch.shingle import low_complexity, shingle_keys
from detector.sketch.winnow import NEVER_PICKED, winnow

WINDOWS = (1, 2, 3, 4, 7, 8, 16, 33, 64)

HEADER = SketchHeader(num_perm=16)

EXTREMES = np.array([-(1 << 63), -(1 << 63) + 1, -1, 0, 7, (1 << 63) - 1], np.int64)
"""Keys at the ends of the order, which an implementation might use as a mark."""


def random_batch(draw: np.random.Generator) -> TokenBatch:
    """Return up to 8 sequences; half of the batches come as ids with a table."""
    table = draw.integers(0, 1 << 32, 64, dtype=np.uint32) if draw.random() < 0.5 else None
    sequences = [_sequence(draw) for _ in range(draw.integers(0, 9))]
    if table is not None:
        sequences = [sequence % np.uint32(64) for sequence in sequences]
    return flatten(sequences, table)


def _sequence(draw: np.random.Generator) -> NDArray[np.uint32]:
    length = int(draw.choice([0, 1, 9, 10, 11, int(draw.integers(12, 120))]))
    shape = draw.integers(4)
    if shape == 0:
        return np.full(length, draw.integers(0, 1 << 32), np.uint32)
    if shape == 1:
        period = draw.integers(0, 1 << 32, draw.integers(1, 30), dtype=np.uint32)
        return np.resize(period, length)
    distinct = int(draw.choice([2, 3, 6, 50, 1 << 32]))
    return draw.integers(0, distinct, length).astype(np.uint32)


def reference(batch: TokenBatch, *, window: int, min_distinct: int) -> Fingerprints:
    """Return the fingerprints by the definitions, one sequence at a time."""
    keys, positions, counts = [np.empty(0, np.int64)], [np.empty(0, np.int32)], []
    for begin, end in zip(batch.offsets[:-1], batch.offsets[1:], strict=True):
        tokens = batch.tokens[begin:end]
        hashes = tokens if batch.table is None else batch.table[tokens]
        found = shingle_keys(hashes)
        use = winnow(found, window) & ~low_complexity(hashes, min_distinct)
        keys.append(found[use])
        positions.append(np.flatnonzero(use).astype(np.int32))
        counts.append(int(use.sum()))
    offsets = offsets_of(np.array(counts, np.int64))
    return Fingerprints(np.concatenate(keys), np.concatenate(positions), offsets)


def assert_prepared(found: Shingles, batch: TokenBatch, *, min_distinct: int, window: int) -> None:
    """Compare the shingles of a batch with the definitions, one sequence at a time."""
    for number in range(len(batch)):
        tokens = batch.tokens[batch.offsets[number] : batch.offsets[number + 1]]
        hashes = tokens if batch.table is None else batch.table[tokens]
        keys, masked = shingle_keys(hashes), low_complexity(hashes, min_distinct)
        picked = ~masked & winnow(np.where(masked, NEVER_PICKED, keys), window)
        got = found.of(number)
        assert got.picked is not None
        for ours, wanted in ((got.keys, keys), (got.masked, masked), (got.picked, picked)):
            assert ours.dtype == wanted.dtype
            np.testing.assert_array_equal(ours, wanted)


def assert_equal(found: Fingerprints, expected: Fingerprints) -> None:
    for name in ("keys", "positions", "offsets"):
        got, wanted = getattr(found, name), getattr(expected, name)
        assert got.dtype == wanted.dtype, name
        np.testing.assert_array_equal(got, wanted, err_msg=name)


def assert_same_bits(backend: Backend, draw: np.random.Generator, *, batches: int) -> None:
    """Compare all that a backend makes of random batches with the definitions."""
    for _ in range(batches):
        batch = random_batch(draw)
        window, min_distinct = int(draw.choice(WINDOWS)), int(draw.integers(1, 11))
        expected = reference(batch, window=window, min_distinct=min_distinct)
        found = backend.fingerprints(batch, window=window, min_distinct=min_distinct)
        assert_equal(found, expected)
        np.testing.assert_array_equal(
            backend.signatures(found.keys, found.offsets, HEADER),
            signatures(expected.keys, expected.offsets, HEADER),
        )
        made = backend.shingles(batch, min_distinct=min_distinct, window=window)
        assert_prepared(made, batch, min_distinct=min_distinct, window=window)
        every = backend.shingles(batch, min_distinct=min_distinct, window=None)
        assert every.picked is None
        np.testing.assert_array_equal(every.keys, made.keys)


def random_ranges(
    draw: np.random.Generator,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return (keys, starts, ends) with many ties, and keys between the ranges."""
    counts = draw.integers(0, 40, draw.integers(1, 9))
    gaps = draw.integers(0, 9, len(counts))
    ends = np.cumsum(counts + gaps) - gaps
    total = int((counts + gaps).sum())
    keys = draw.choice(EXTREMES[: draw.integers(1, len(EXTREMES) + 1)], total)
    return keys.astype(np.int64), ends - counts, ends
