"""A plugin under which kernels run as the Python they are written in, so that their lines count.

numba leaves them as they are where NUMBA_DISABLE_JIT is set; what is written in LLVM's own words is
replaced here, before any kernel takes it.
"""

import os

assert os.environ.get("NUMBA_DISABLE_JIT") == "1", "set NUMBA_DISABLE_JIT=1"

from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from detector.kernels import line, prefetch  # noqa: E402

WORD = 2**64 - 1

LONG = frozenset(
    {
        "test_recall_follows_the_s_curve",
        "test_growing_to_two_million_postings_moves_a_bounded_part_at_a_time",
    }
)
"""Tests of so many tokens that the kernels they try must be compiled."""


def look(table: NDArray[Any], at: int, mask: tuple[int, int], key: int, most: int) -> np.uint64:
    """Return what `line.look` returns."""
    found = 0
    for number in range(8):
        word = int(table[int(at) + number]) & int(mask[number % 2]) & WORD
        wanted = (0 if number % 2 else int(key)) & WORD
        found |= (word == wanted) << number | (word <= (int(most) & WORD)) << (8 + number)
    return np.uint64(found)


def lowest(bits: int) -> np.uint64:
    """Return what `line.lowest` returns."""
    bits = int(bits)
    return np.uint64((bits & -bits).bit_length() - 1 if bits else 64)


line.look = look
line.lowest = lowest
vars(prefetch)["prefetch"] = lambda _array, _index: None
np.seterr(over="ignore")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes minutes without a compiler."""
    long = [one for one in items if one.name in LONG]
    items[:] = [one for one in items if one.name not in LONG]
    config.hook.pytest_deselected(items=long)
