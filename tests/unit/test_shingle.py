"""Shingle keys and the low-complexity mask: numpy, numba and plain Python agree bit for bit."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.kernels.shingle import shingles
from detector.model import MAX_SEQUENCE_TOKENS, Hashes
from detector.sketch.shingle import BASE, MIX_1, MIX_2, distinct, low_complexity, shingle_keys

WORD = 1 << 64
FIXED = settings(deadline=None, derandomize=True, max_examples=300)

any_tokens = st.lists(st.integers(0, 2**32 - 1), max_size=40)
few_tokens = st.lists(st.integers(0, 4), max_size=40)
repeats = st.builds(
    lambda period, count: (period * count)[:40],
    st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=9),
    st.integers(1, 40),
)
texts = any_tokens | few_tokens | repeats


def plain_key(window: Sequence[int]) -> int:
    """Return the key of 10 tokens in big integers: a polynomial, then MurmurHash3's finalizer."""
    value: int = sum(token * BASE ** (9 - i) for i, token in enumerate(window)) % WORD
    value = (value ^ value >> 33) * MIX_1 % WORD
    value = (value ^ value >> 33) * MIX_2 % WORD
    value ^= value >> 33
    return value - WORD if value >= WORD // 2 else value


def windows(tokens: Sequence[int]) -> list[Sequence[int]]:
    return [tokens[i : i + 10] for i in range(len(tokens) - 9)]


def hashes(tokens: Sequence[int]) -> Hashes:
    return np.array(tokens, np.uint32)


@FIXED
@given(texts)
def test_reference_and_kernel_equal_a_big_integer_polynomial(tokens: list[int]) -> None:
    wanted = [plain_key(window) for window in windows(tokens)]
    reference = shingle_keys(hashes(tokens))
    kernel, _ = shingles(hashes(tokens), 6)
    assert reference.dtype == kernel.dtype == np.int64
    assert reference.tolist() == wanted
    assert kernel.tolist() == wanted


@FIXED
@given(texts, st.integers(1, 10))
def test_low_complexity_is_a_count_of_a_set(tokens: list[int], min_distinct: int) -> None:
    wanted = [len(set(window)) < min_distinct for window in windows(tokens)]
    assert low_complexity(hashes(tokens), min_distinct).tolist() == wanted
    assert shingles(hashes(tokens), min_distinct)[1].tolist() == wanted


@pytest.mark.parametrize("length", range(41))
def test_every_length_gives_its_shingles(length: int) -> None:
    tokens = np.arange(length, dtype=np.uint32)
    count = max(length - 9, 0)
    assert len(shingle_keys(tokens)) == len(low_complexity(tokens, 6)) == count
    assert [len(made) for made in shingles(tokens, 6)] == [count, count]


def test_the_longest_part_and_the_largest_hashes_are_identical() -> None:
    rng = np.random.default_rng(1)
    tokens = rng.integers(0, 2**32, MAX_SEQUENCE_TOKENS, np.uint32)
    tokens[1000:3000] = 2**32 - 1
    tokens[5000:9000] = np.resize(tokens[:7], 4000)
    keys, masked = shingles(tokens, 6)
    assert np.array_equal(keys, shingle_keys(tokens))
    assert np.array_equal(masked, low_complexity(tokens, 6))
    assert masked[1000:2991].all()
    assert not masked[5000:8991].any()


def test_hashes_as_they_come_from_the_wire_are_accepted() -> None:
    """Records decode to read-only arrays; the kernel must take them and leave them alone."""
    tokens = np.frombuffer(bytes(range(160)), "<u4")
    assert not tokens.flags.writeable
    assert shingles(tokens, 6)[0].tolist() == shingle_keys(tokens).tolist()


def test_the_order_of_tokens_reaches_every_bit() -> None:
    """The raw polynomial's lowest bit is the parity of the tokens, whatever their order."""
    rng = np.random.default_rng(2)
    tokens = rng.integers(0, 2**32, 10, np.uint32)
    keys = [int(shingle_keys(rng.permutation(tokens))[0]) for _ in range(256)]
    assert len(set(keys)) == 256
    for bit in range(64):
        assert 70 < sum(key >> bit & 1 for key in keys) < 186


def test_degenerate_shingles_do_not_collide() -> None:
    """All shingles of two tokens, every period and phase: 2^10 texts, 2^10 keys."""
    texts = (np.arange(1024)[:, None] >> np.arange(10) & 1).astype(np.uint32)
    for low, high in ((0, 1), (7, 2**32 - 1), (2**31, 2**31 + 1)):
        made = np.where(texts == 1, high, low).astype(np.uint32)
        assert len({int(shingle_keys(row)[0]) for row in made}) == 1024


@FIXED
@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-2, 2), max_size=40))
def test_distinct_keys_are_those_of_numpy(values: list[int]) -> None:
    keys = np.array(values, np.int64)
    assert np.array_equal(distinct(keys), np.unique(keys))
    assert keys.tolist() == values
