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
        # tables that are filled until they grow, run out of memory or give positions up
        "test_a_budget_is_used_before_anything_is_forgotten_early",
        "test_a_small_budget_is_kept_by_forgetting_early",
        "test_a_table_loses_and_doubles_nothing_at_any_point_of_its_growth",
        "test_growing_to_two_million_postings_moves_a_bounded_part_at_a_time",
        "test_no_picked_key_is_lost",
        "test_no_posting_of_a_sample_is_lost",
        "test_real_shingles_through_growth_and_eviction_equal_the_model",
        "test_renumbering_while_the_index_grows_loses_nothing",
        "test_the_byte_budget_holds_and_evictions_are_counted",
        "test_the_byte_budget_holds_and_shortening_is_counted",
        # shares and errors that only thousands of sketches show
        "test_lsh_finds_edited_copies_as_often_as_its_curve_says",
        "test_recall_follows_the_s_curve",
        "test_the_error_of_an_estimate_is_no_worse_than_datasketch",
        "test_the_error_of_the_estimate_is_datasketchs",
        # what is compiled is what it asks
        "test_nothing_is_compiled_while_a_bleed_is_judged",
    }
)
"""Tests of so many tokens that the kernels they try must be compiled.

Each takes 20 s to many minutes without. The other run has them, where branches of kernels do not
count."""

BENCH = "_bench.py"
"""How files end whose tests run a benchmark, which is of compiled kernels."""


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
    long = [one for one in items if _is_long(one)]
    items[:] = [one for one in items if not _is_long(one)]
    config.hook.pytest_deselected(items=long)


def _is_long(item: pytest.Item) -> bool:
    return item.name.partition("[")[0] in LONG or item.path.name.endswith(BENCH)
