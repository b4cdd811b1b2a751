"""Our sketches are datasketch's sketches, bit for bit, and say with what they were made."""

import datasketch
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.errors import SketchError
from detector.kernels import minhash as kernel
from detector.sketch.header import SketchHeader
from detector.sketch.minhash import (
    EMPTY_VALUE,
    Sketches,
    jaccard,
    merge,
    permutations,
    shingle_hashes,
    signatures,
)

FIXED = settings(deadline=None, derandomize=True)

HEADER = SketchHeader()


def theirs(hashes: list[int], *, num_perm: int = 128, seed: int = 1) -> datasketch.MinHash:
    sketch = datasketch.MinHash(num_perm=num_perm, seed=seed, hashfunc=int)
    if hashes:
        sketch.update_batch(hashes)
    return sketch


def keys_of(hashes: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return shingle keys whose 32-bit hashes are these; the high half is noise."""
    noise = np.random.default_rng(0).integers(-(1 << 31), 1 << 31, len(hashes)) << 32
    return noise | np.array(hashes, np.int64)


@pytest.mark.parametrize(("num_perm", "seed"), [(128, 1), (128, 7), (16, 1), (1, 2)])
def test_permutations_are_those_of_datasketch(num_perm: int, seed: int) -> None:
    a, b = permutations(SketchHeader(num_perm=num_perm, seed=seed))
    np.testing.assert_array_equal(theirs([], num_perm=num_perm, seed=seed).permutations, [a, b])


@FIXED
@given(st.lists(st.integers(0, 2**32 - 1), max_size=50))
def test_sketches_are_those_of_datasketch(hashes: list[int]) -> None:
    keys, offsets = keys_of(hashes), np.array([0, len(hashes)])
    assert shingle_hashes(keys).tolist() == hashes
    expected = theirs(hashes).hashvalues
    assert expected.dtype == np.uint32
    np.testing.assert_array_equal(signatures(keys, offsets, HEADER)[0], expected)
    np.testing.assert_array_equal(kernel.signatures(keys, offsets, HEADER)[0], expected)


def test_a_set_larger_than_a_block_is_one_sketch() -> None:
    draw = np.random.default_rng(1)
    lengths = [kernel.BLOCK - 1, 0, kernel.BLOCK, 3 * kernel.BLOCK + 1, 5]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    keys = draw.integers(-(1 << 63), (1 << 63) - 1, offsets[-1])
    expected = signatures(keys, offsets, HEADER)
    np.testing.assert_array_equal(kernel.signatures(keys, offsets, HEADER), expected)
    assert (expected[1] == EMPTY_VALUE).all()


def test_masked_keys_are_left_out() -> None:
    draw = np.random.default_rng(2)
    keys = draw.integers(-(1 << 63), (1 << 63) - 1, 5000)
    masked = draw.random(5000) < 0.5
    offsets = np.array([0, 2500, 5000])
    kept = np.concatenate(
        [[0], np.cumsum([int((~masked[:2500]).sum()), int((~masked[2500:]).sum())])]
    )
    np.testing.assert_array_equal(
        kernel.signatures(keys, offsets, HEADER, masked=masked),
        signatures(keys[~masked], kept, HEADER),
    )


def test_datasketch_loads_and_compares_our_sketches() -> None:
    draw = np.random.default_rng(3)
    members = draw.integers(0, 300, (12, 150))
    offsets = np.arange(0, 12 * 150 + 1, 150)
    ours = Sketches(HEADER, kernel.signatures(keys_of(members.ravel().tolist()), offsets, HEADER))
    a, b = permutations(HEADER)
    loaded = [
        datasketch.MinHash(hashvalues=row, permutations=np.array([a, b]), scheme="affine32", seed=1)
        for row in ours.values
    ]
    first = Sketches(HEADER, ours.values[:1])
    estimates = jaccard(first, ours)
    joined = merge(first, ours)
    for at, sketch in enumerate(loaded):
        assert sketch == theirs(members[at].tolist())
        assert estimates[at] == loaded[0].jaccard(sketch)
        lean = datasketch.LeanMinHash(sketch)
        assert lean.jaccard(datasketch.LeanMinHash(loaded[0])) == estimates[at]
        union = datasketch.MinHash.union(loaded[0], sketch)
        np.testing.assert_array_equal(union.hashvalues, joined.values[at])


def test_the_error_of_the_estimate_is_datasketchs() -> None:
    draw = np.random.default_rng(4)
    errors: list[float] = []
    for _ in range(300):
        size, shared = 200, int(draw.integers(0, 201))
        members = draw.choice(1 << 32, 2 * size - shared, replace=False)
        both = np.concatenate([members[:size], members[size - shared :]])
        values = kernel.signatures(both.astype(np.int64), np.array([0, size, 2 * size]), HEADER)
        sketches = [Sketches(HEADER, values[i : i + 1]) for i in (0, 1)]
        errors.append(float(jaccard(*sketches)[0]) - shared / (2 * size - shared))
    assert np.sqrt(np.mean(np.square(errors))) < 0.044  # sqrt(.25 / 128), the worst of any J
    assert abs(np.mean(errors)) < 0.006


@pytest.mark.parametrize(
    ("other", "named"),
    [
        (SketchHeader(seed=2), "seed 1 and 2"),
        (SketchHeader(num_perm=64), "num_perm 128 and 64"),
        (SketchHeader(k=8, key_id="00ff"), "k 10 and 8, key_id '' and '00ff'"),
    ],
)
def test_unlike_sketches_are_not_compared(other: SketchHeader, named: str) -> None:
    first = Sketches(HEADER, np.zeros((1, 128), np.uint32))
    second = Sketches(other, np.zeros((1, other.num_perm), np.uint32))
    with pytest.raises(SketchError, match=named):
        jaccard(first, second)
    with pytest.raises(SketchError, match=named):
        merge(first, second)
