"""Keys in common, by a table, against Python's sets: repeats and crowded places included."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.kernels.overlap import held, jaccard

FIXED = settings(deadline=None, derandomize=True, max_examples=300)

crowded = st.integers(-3, 3) | st.integers(-3, 3).map(lambda high: high << 60)
"""Small keys begin alike, so that many want the same place, the last one included."""

keys = st.lists(crowded, max_size=30)


@FIXED
@given(keys, keys)
def test_every_key_that_is_asked_for_counts(known: list[int], asked: list[int]) -> None:
    expected = sum(one in known for one in asked)
    assert held(np.array(known, np.int64), np.array(asked, np.int64)) == expected


@FIXED
@given(keys, keys)
def test_the_similarity_is_that_of_sets(first: list[int], second: list[int]) -> None:
    shared, both = set(first) & set(second), set(first) | set(second)
    expected = len(shared) / max(len(both), 1)
    assert jaccard(np.array(first, np.int64), np.array(second, np.int64)) == expected
