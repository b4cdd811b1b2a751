"""Leaving common shingles out of a sample loses no run of window + 9 rare tokens."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from detector.index.memory import Memory
from detector.index.selection import REMEMBERED_PER_WINDOW, sampling_of
from detector.kernels.buckets import USED
from detector.kernels.shingle import shingles
from detector.kernels.winnow import sample
from detector.settings import DetectionSettings, FilterSettings, IndexSettings
from detector.sketch.batch import Prepared
from tests.unit.sequences import LEARNED, detector, found, join, pairs, prompt, response, text

FIXED = settings(deadline=None, derandomize=True, max_examples=500)

WORD = st.integers(-(2**63), 2**63 - 1)
EXTREMES = st.sampled_from([-(2**63), 2**63 - 2, 2**63 - 1, 0])


def winnowing(window: int) -> IndexSettings:
    return IndexSettings(sampling="winnow", winnow_window=window)


def winnowed(window: int) -> DetectionSettings:
    return DetectionSettings(commonness=LEARNED, index=winnowing(window))


def use_of(keys: NDArray[np.int64], window: int, masked: set[int], common: set[int]) -> set[int]:
    """Return the positions that are indexed; what is masked or common goes by the key."""
    is_masked = np.isin(keys, np.array(sorted(masked), np.int64))
    rare = ~is_masked & ~np.isin(keys, np.array(sorted(common), np.int64))
    picked = sampling_of(winnowing(window)).picked(keys, is_masked)
    assert not (picked & is_masked).any()
    return set(np.flatnonzero(picked & rare).tolist())


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


def test_without_winnowing_everything_that_is_not_masked_is_the_sample() -> None:
    masked = np.arange(500) % 3 == 0
    keys = np.random.default_rng(1).integers(-(1 << 63), (1 << 63) - 1, 500)
    every = sampling_of(IndexSettings())
    np.testing.assert_array_equal(every.picked(keys, masked), ~masked)
    np.testing.assert_array_equal(every.remembered(keys, masked), ~masked)


@pytest.mark.parametrize("window", [2, 3, 4, 8, 16, 64])
def test_nearly_every_pick_is_remembered_wherever_it_stands(window: int) -> None:
    sampling = sampling_of(winnowing(window))
    keys = np.random.default_rng(window).integers(-(1 << 63), (1 << 63) - 1, 200_000)
    masked = np.arange(len(keys)) % 10 == 0
    picked = sampling.picked(keys, masked)
    remembered = sampling.remembered(keys, masked)
    assert not (picked & ~remembered).any()
    assert not (remembered & masked).any()
    by_chance = picked & (keys > sampling.limit)
    assert by_chance.sum() <= picked.sum() * 0.08
    share = min(REMEMBERED_PER_WINDOW / window, 1)
    assert remembered.sum() == pytest.approx(len(keys) * 0.9 * share, rel=0.06)


def test_a_sample_made_by_a_backend_is_learned_and_indexed_alike() -> None:
    """Findings, postings and memory are those of a detector that samples itself."""
    made, own = (detector(winnowed(8)) for _ in range(2))
    phrase, secret = text(1, 60), text(2, 60)
    for number, tenant in enumerate("xyzab"):
        tokens = join(text(10 + number, 100), phrase, secret if tenant in "ab" else text(3, 9))
        kind = response if tenant == "b" else prompt
        one = kind(tenant, f"{number}", number, tokens)
        keys, masked = shingles(tokens, FilterSettings().min_distinct)
        prepared = Prepared(keys, masked, sample(keys, masked, 8))
        assert made.observe(one, prepared) == own.observe(one)
    assert made.stats == own.stats
    assert made.stats.findings == 1
    assert made.live_postings == own.live_postings


def test_the_memory_of_a_day_holds_the_sample_and_no_more() -> None:
    held = []
    for index in (winnowing(8), IndexSettings()):
        memory = Memory(LEARNED)
        by = detector(DetectionSettings(commonness=LEARNED, index=index), memory=memory)
        for number in range(20):
            by.warm(prompt("a", f"{number}", number, text(number, 1_000)))
        held.append(int(memory.seen.tables[0][USED]))
    assert held[0] / held[1] == pytest.approx(REMEMBERED_PER_WINDOW / 8, rel=0.05)


def test_stock_phrases_of_any_length_explain_themselves_whatever_stands_around_them() -> None:
    """By picks alone those shorter than a window and 9 tokens would be known by chance only."""
    by, flagged = detector(winnowed(8)), 0
    for number in range(200):
        phrase = text(500 + number, 10 + number % 20)
        for tenant in "xyz":
            around = [text(3 * (2 * number + side) + ord(tenant), 40) for side in range(2)]
            by.warm(prompt(tenant, f"{tenant}{number}", -1000, join(around[0], phrase, around[1])))
        at = 10 * number
        told = prompt("a", f"a{number}", at, join(text(9_000 + at, 30), phrase))
        heard = response("b", f"b{number}", at + 5, join(text(9_001 + at, 30), phrase))
        flagged += bool(found([told, heard], by=by))
    assert flagged <= 4


@pytest.mark.parametrize("window", [2, 8, 16])
def test_a_rare_run_between_stock_phrases_is_found(window: int) -> None:
    """The stock phrases beside it are common, and not one of them is indexed."""
    by = detector(winnowed(window))
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
