"""Bigram keys and sampled sketches are the same compiled and in plain numpy."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.kernels import bigrams as kernel
from detector.sketch import bigrams as reference
from detector.sketch.header import SketchHeader
from detector.sketch.minhash import EMPTY_VALUE, permutations
from tests.unit.sequences import text

FIXED = settings(deadline=None, derandomize=True)

HEADER = SketchHeader(num_perm=64, k=reference.BIGRAM_TOKENS)


@FIXED
@given(st.lists(st.integers(0, 2**32 - 1), max_size=80), st.integers(0, 2**32 - 1))
def test_compiled_and_plain_agree(tokens: list[int], salt: int) -> None:
    hashes = np.array(tokens, np.uint32)
    keys = reference.bigram_keys(hashes)
    assert len(keys) == max(len(tokens) - 1, 0)
    np.testing.assert_array_equal(kernel.bigram_keys(hashes), keys)
    sketch = kernel.sampled_sketch(hashes, np.uint32(salt), *permutations(HEADER))
    expected = reference.sampled_sketch(hashes, np.uint32(salt), HEADER)
    np.testing.assert_array_equal(sketch, expected)


def test_a_text_longer_than_a_block_is_one_sketch() -> None:
    hashes = text(1, 40_000)
    sketch = kernel.sampled_sketch(hashes, np.uint32(9), *permutations(HEADER))
    np.testing.assert_array_equal(sketch, reference.sampled_sketch(hashes, np.uint32(9), HEADER))


def test_a_bigram_has_an_order() -> None:
    one, other = (reference.bigram_keys(np.array(two, np.uint32)) for two in ([7, 9], [9, 7]))
    assert one != other


def test_one_bigram_in_four_is_sampled() -> None:
    keys = reference.bigram_keys(text(2, 100_000)).view(np.uint64)
    share = (keys >> np.uint64(reference.SAMPLE_SHIFT) == 0).mean()
    assert 0.24 < share < 0.26


def test_nothing_to_sketch_is_an_empty_set() -> None:
    sketch = kernel.sampled_sketch(np.empty(0, np.uint32), np.uint32(0), *permutations(HEADER))
    assert (sketch == EMPTY_VALUE).all()


def test_similarity_of_sets() -> None:
    assert reference.jaccard_of(np.array([1, 2, 3]), np.array([2, 3, 4])) == 0.5
    assert reference.jaccard_of(np.array([], np.int64), np.array([], np.int64)) == 0
