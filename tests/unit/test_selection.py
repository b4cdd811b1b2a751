"""Leaving common shingles out of a sample loses no run of window + 9 rare tokens."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from detector.index.selection import selected
from detector.kernels.winnow import sample
from detector.settings import DetectionSettings, IndexSettings
from detector.sketch.batch import Prepared
from tests.unit.sequences import LEARNED, detector, found, join, pairs, prompt, response, text

FIXED = settings(deadline=None, derandomize=True, max_examples=500)

WORD = st.integers(-(2**63), 2**63 - 1)
EXTREMES = st.sampled_from([-(2**63), 2**63 - 2, 2**63 - 1, 0])


def winnowing(window: int) -> IndexSettings:
    return IndexSettings(sampling="winnow", winnow_window=window)


def use_of(keys: NDArray[np.int64], window: int, masked: set[int], common: set[int]) -> set[int]:
    """Return the positions that are indexed; what is masked or common goes by the key."""
    is_masked = np.isin(keys, np.array(sorted(masked), np.int64))
    rare = ~is_masked & ~np.isin(keys, np.array(sorted(common), np.int64))
    use = selected(winnowing(window), keys, is_masked, rare)
    assert not (use & ~rare).any()
    return set(np.flatnonzero(use).tolist())


@FIXED
@given(st.integers(2, 16), st.data())
def test_every_rare_run_of_a_window_shares_a_pick(window: int, data: st.DataObject) -> None:
    """Repeats, ties, equal and extreme keys, masked and common stretches right beside the run."""
    alphabet = data.draw(st.lists(WORD | EXTREMES, min_size=3, max_size=12, unique=True))
    rare, masked = alphabet[:-2], {alphabet[-1]}
    later_common = {alphabet[-2]}
    earlier_common = data.draw(st.sampled_from([later_common, set[int]()]))
    anything = st.lists(st.sampled_from(alphabet), max_size=40)
    beside = st.sampled_from([[alphabet[-2]] * 20, [alphabet[-1]] * 20, []])
    run = data.draw(st.lists(st.sampled_from(rare), min_size=window, max_size=3 * window))
    picked = []
    for common in (earlier_common, later_common):
        before = data.draw(anything) + data.draw(beside)
        after = data.draw(beside) + data.draw(anything)
        keys = np.array([*before, *run, *after], np.int64)
        picked.append({at - len(before) for at in use_of(keys, window, masked, common)})
    shared = picked[0] & picked[1]
    for begin in range(len(run) - window + 1):
        assert shared & set(range(begin, begin + window))


def test_a_sample_made_by_a_backend_loses_its_common_shingles_too() -> None:
    keys = np.random.default_rng(1).integers(-(1 << 63), (1 << 63) - 1, 500)
    masked, rare = np.zeros(500, np.bool_), np.arange(500) % 3 > 0
    made = Prepared(keys, masked, sample(keys, masked, 8))
    expected = selected(winnowing(8), keys, masked, rare)
    np.testing.assert_array_equal(selected(winnowing(8), keys, masked, rare, made), expected)
    assert 0 < expected.sum() < sample(keys, masked, 8).sum()


@pytest.mark.parametrize("window", [2, 8, 16])
def test_a_rare_run_between_stock_phrases_is_found(window: int) -> None:
    """The stock phrases beside it are common, and not one of them is indexed."""
    by = detector(DetectionSettings(commonness=LEARNED, index=winnowing(window)))
    phrases = [text(9000 + number, 60) for number in range(40)]
    for number, phrase in enumerate(phrases):
        for tenant in ("x", "y", "z"):
            by.warm(prompt(tenant, f"{tenant}{number}", -1000, phrase))
    for name in range(40):
        secret = text(100 + name, window + 9 + 2 * 9)
        before, after = phrases[name], phrases[-1 - name]
        traffic = [
            prompt("a", f"a{name}", 10 * name, join(before, secret, after)),
            response("b", f"b{name}", 10 * name + 5, join(after, secret, before)),
        ]
        assert pairs(found(traffic, by=by)) == {(f"b{name}", "a")}
    assert by.live_postings < 40 * 2 * (window + 9 + 4 * 9)
