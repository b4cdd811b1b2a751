"""Winnowing: a common run of window + 9 tokens always shares a pick, at the promised density."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.model import Hashes
from detector.settings import DetectionSettings, IndexSettings
from detector.sketch.shingle import low_complexity, shingle_keys
from detector.sketch.winnow import winnow
from tests.unit.sequences import LEARNED, detector, found, join, pairs, prompt, response, text

FIXED = settings(deadline=None, derandomize=True, max_examples=300)

few = st.lists(st.integers(0, 2), max_size=60)
many = st.lists(st.integers(0, 2**32 - 1), max_size=60)
windows = st.integers(2, 20)


def hashes(tokens: list[int]) -> Hashes:
    return np.array(tokens, np.uint32)


def naive(keys: list[int], window: int) -> set[int]:
    """Return the picked positions: the rightmost minimum of each window."""
    ends = range(min(window, len(keys)), len(keys) + 1)
    picked = set()
    for end in ends if keys else ():
        start = max(end - window, 0)
        picked.add(min(range(start, end), key=lambda i: (keys[i], -i)))
    return picked


@FIXED
@given(st.lists(st.integers(-3, 3) | st.integers(-(2**63), 2**63 - 1), max_size=60), windows)
def test_picks_are_the_rightmost_minimum_of_every_window(keys: list[int], window: int) -> None:
    picks = winnow(np.array(keys, np.int64), window)
    assert set(np.flatnonzero(picks).tolist()) == naive(keys, window)


@FIXED
@given(windows, st.data())
def test_a_common_run_of_window_plus_9_tokens_shares_a_pick(
    window: int, data: st.DataObject
) -> None:
    alphabet = st.integers(0, 2) if data.draw(st.booleans()) else st.integers(0, 2**32 - 1)
    exactly = window + 9
    run = data.draw(st.lists(alphabet, min_size=exactly, max_size=exactly))
    sides = [data.draw(st.tuples(few | many, few | many)) for _ in range(2)]
    picked = []
    for before, after in sides:
        picks = winnow(shingle_keys(hashes([*before, *run, *after])), window)
        picked.append(set(np.flatnonzero(picks[len(before) :][:window]).tolist()))
    assert picked[0] & picked[1]


def test_all_equal_keys_are_picked_once_a_window() -> None:
    keys = shingle_keys(np.full(209, 7, np.uint32))
    assert np.flatnonzero(winnow(keys, 8)).tolist() == list(range(7, 200))


@pytest.mark.parametrize("window", [4, 8, 16, 64])
def test_density_is_two_in_window_plus_one(window: int) -> None:
    picks = winnow(shingle_keys(text(1, 200_000)), window)
    assert picks.mean() == pytest.approx(2 / (window + 1), rel=0.02)


def _sampling(window: int) -> DetectionSettings:
    return DetectionSettings(
        commonness=LEARNED, index=IndexSettings(sampling="winnow", winnow_window=window)
    )


@pytest.mark.parametrize("window", [2, 8, 16])
def test_a_sampling_detector_finds_every_run_of_window_plus_9(window: int) -> None:
    for name in range(60):
        secret = text(1000 + name, window + 9)
        traffic = [
            prompt("a", "1", 0, join(text(name, name), secret, text(2000 + name, 20))),
            response("b", "2", 5, join(text(3000 + name, 30), secret, text(4000 + name, name % 7))),
        ]
        assert pairs(found(traffic, by=detector(_sampling(window)))) == {("2", "a")}


def test_a_sampling_detector_finds_runs_beside_low_complexity() -> None:
    """A pick that falls on a masked shingle would be lost, and the run with it."""
    window = 8
    for name in range(60):
        secret = join(text(1000 + name, 9), np.full(8, name, np.uint32))
        assert low_complexity(secret, 6).sum() == 3
        traffic = [
            prompt("a", "1", 0, join(text(name, 20), secret, text(2000 + name, 20))),
            response("b", "2", 5, join(text(3000 + name, 30), secret, text(4000 + name, 9))),
        ]
        assert pairs(found(traffic, by=detector(_sampling(window)))) == {("2", "a")}, name


def test_sampling_holds_fewer_postings() -> None:
    full, sampled = detector(), detector(_sampling(16))
    for by in (full, sampled):
        by.observe(prompt("a", "1", 0, text(1, 50_000)))
    assert sampled.live_postings < 0.14 * full.live_postings
