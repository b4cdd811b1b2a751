"""A look at a whole cache line, and the search of a block of keys, against plain Python."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.kernels import buckets
from detector.kernels.buckets import HOMES, ROWS, STEP, WIDER, home
from detector.kernels.cache import njit
from detector.kernels.line import look, lowest
from detector.kernels.seek import BLOCK, NOWHERE, room, seek

MASK = (-1 << 18, (1 << 23) - 1)
SMALL = st.sampled_from([0, 1, 2, 1 << 18, 3 << 18, 5 | 1 << 18, -1, 1 << 23, -(1 << 63)])


def _looked(line: Any, key: int, most: int) -> Any:
    return look(line, np.uint64(0), MASK, key, most)


def _lowest_bit(bits: Any) -> Any:
    return lowest(bits)


looked, lowest_bit = njit(_looked), njit(_lowest_bit)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(SMALL, min_size=8, max_size=8), SMALL, st.integers(0, 3))
def test_a_look_says_which_words_match(words: list[int], key: int, most: int) -> None:
    key &= MASK[0]
    cut = [word & MASK[number % 2] for number, word in enumerate(words)]
    equal = [word == (0 if number % 2 else key) for number, word in enumerate(cut)]
    little = [word % (1 << 64) <= most for word in cut]
    wanted = sum(bit << number for number, bit in enumerate(equal + little))
    assert looked(np.array(words, np.int64), key, most) == wanted


@pytest.mark.parametrize("bit", [0, 1, 7, 63])
def test_the_lowest_bit_is_found(bit: int) -> None:
    assert lowest_bit(np.uint64(1 << bit | 1 << 63)) == bit


def _searched(table: Any, key: int, gone: int) -> int:
    """Return what `seek` must find for one key, row by row."""
    free = 0
    bucket = int(home(np.int64(key), table))
    while True:
        rows = range(bucket, bucket + ROWS * 2, 2)
        if any(int(table[row]) >> 18 == key >> 18 for row in rows):
            return 0
        for row in rows:
            if not free and int(table[row + 1]) & MASK[1] <= gone:
                free = row
        if any(int(table[row + 1]) & MASK[1] == 0 for row in rows):
            return free
        bucket += int(STEP)


@pytest.mark.parametrize("seed", range(5))
def test_the_first_free_row_on_the_way_is_found(seed: int) -> None:
    """Tables nearly full: ways lead over many buckets, and some keys are there already."""
    draw = np.random.default_rng(seed)
    table = np.zeros(buckets.words(16), np.int64)
    table[HOMES] = table[WIDER] = 16
    in_use = table[int(STEP) : 24 * int(STEP)]
    in_use[0::2] = draw.integers(-(1 << 63), (1 << 63) - 1, len(in_use) // 2)
    in_use[1::2] = draw.integers(1, 9, len(in_use) // 2) * (draw.random(len(in_use) // 2) < 0.9)
    keys = draw.integers(-(1 << 63), (1 << 63) - 1, BLOCK + 7)
    keys[::5] = draw.choice(in_use[0::2], len(keys[::5]))
    use = draw.random(len(keys)) < 0.8
    found = room()
    seek(table, keys, use, 7, len(keys), MASK, 2, found)
    wanted = [
        _searched(table, int(key), 2) if used else int(NOWHERE)
        for key, used in zip(keys[7:], use[7:], strict=True)
    ]
    assert found[0].tolist() == wanted
    assert 0 < wanted.count(0) < BLOCK
