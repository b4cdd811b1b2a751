"""The memory that others share: what it tells, what it takes, and what taint does to both."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.index.shared_memory import SharedMemory
from detector.index.showings import Showings, Taint, by_range, ranges_of
from detector.index.tenant_table import mark_of, parties
from detector.kernels.tenants import NOBODY
from detector.sketch.shingle import Keys
from detector.sketch.tag_keys import TagKeys
from tests.unit.sequences import LEARNED, SETTINGS, detector, prompt, response, text

FIXED = settings(deadline=None, derandomize=True)
TAGS = np.arange(1, 6, dtype=np.int64) * 0x0123_4567_89AB_CDEF


def memory() -> SharedMemory:
    return SharedMemory(LEARNED, TagKeys(bytes(32)))


def shown(tags: Keys, party: int, second: int = 10) -> Showings:
    return Showings(tags, np.full(len(tags), mark_of(party, second * 1000)))


def known(of: SharedMemory, tags: Keys) -> list[set[int]]:
    """Return the real parties that are known for each tag."""
    return [set(row) - {-1, NOBODY} for row in parties(of.seen.lookup(tags)).tolist()]


def test_a_party_is_told_once_and_again_only_with_what_is_new() -> None:
    mine = memory()
    by = detector(SETTINGS, memory=mine)
    by.observe(prompt("a", "1", 0, text(1, 40)))
    first = mine.take_showings()
    assert len(first.tags) == 31
    assert set(parties(first.marks)) == {mine.party("a")}
    by.observe(prompt("a", "2", 1, np.concatenate([text(1, 40), text(2, 5)])))
    assert len(mine.take_showings().tags) == 5
    by.observe(prompt("b", "3", 2, text(1, 40)))
    assert set(parties(mine.take_showings().marks)) == {mine.party("b")}


def test_tags_are_not_the_keys_and_depend_on_the_secret() -> None:
    keys = np.arange(1_000, dtype=np.int64)
    ours = memory().tagged(keys)
    theirs = SharedMemory(LEARNED, TagKeys(bytes(31) + b"\1")).tagged(keys)
    for one, other in ((ours, keys), (ours, theirs)):
        assert not np.isin(one, other).any()


def test_what_turns_out_to_bleed_in_the_same_batch_is_never_told() -> None:
    mine = memory()
    by = detector(SETTINGS, memory=mine)
    assert not by.observe(prompt("a", "1", 0, text(1, 40)))
    mine.take_showings()
    assert by.observe(response("b", "2", 5, text(1, 40)))
    assert not len(mine.take_showings().tags)
    (taint,) = mine.take_taints()
    assert (taint.origin, taint.receiver) == (mine.party("a"), mine.party("b"))
    assert (taint.since_ms, len(taint.tags)) == (5_000, 31)
    assert not mine.take_taints()


def test_merging_learns_every_mark_and_nothing_tainted() -> None:
    mine = memory()
    mine.tainted.add(TAGS[:2], origin=3, now_ms=0)
    mine.merge(shown(TAGS, 7), now_ms=20_000)
    mine.merge(shown(TAGS[1:], 8), now_ms=20_000)
    assert known(mine, TAGS) == [set(), set(), {7, 8}, {7, 8}, {7, 8}]


@FIXED
@given(st.permutations(range(6)), st.lists(st.integers(0, 5), max_size=6))
def test_order_and_repetition_make_no_difference(order: list[int], again: list[int]) -> None:
    told = [shown(TAGS[at % 3 : at % 3 + 2], 10 + at % 4, 100 + at) for at in range(6)]
    one, other = memory(), memory()
    for at in range(6):
        one.merge(told[at], now_ms=200_000)
    for at in [*order, *again]:
        other.merge(told[at], now_ms=200_000)
    assert [set(row) for row in one.seen.lookup(TAGS).tolist()] == [
        set(row) for row in other.seen.lookup(TAGS).tolist()
    ]


def test_a_taint_from_elsewhere_takes_back_the_receiver_and_bars_the_tags() -> None:
    mine = memory()
    for party, second in ((7, 5), (8, 50)):
        mine.merge(shown(TAGS, party, second), now_ms=60_000)
    mine.merge_taint(Taint(TAGS[:2], origin=7, receiver=8, since_ms=40_000, at_ms=70_000))
    mine.merge(shown(TAGS, 9, 80), now_ms=80_000)
    assert known(mine, TAGS) == [{7}, {7}, {7, 8, 9}, {7, 8, 9}, {7, 8, 9}]
    assert set(parties(mine.tainted.origins(TAGS[:2])).max(axis=1)) == {7}
    assert not mine.take_taints(), "what was heard is not told again"


def test_what_was_told_of_the_past_ends_the_learning() -> None:
    mine = memory()
    mine.advance(7_200_000)
    mine.merge(shown(TAGS[:1], 7, 7_200), now_ms=7_200_000)
    assert mine.seen.since_ms == 7_200_000
    mine.merge(shown(TAGS[1:], 7, 100), now_ms=100_000)
    assert (mine.seen.since_ms, mine.now_ms) == (100_000, 7_200_000)


@pytest.mark.parametrize("count", [1, 3, 8, 1_000])
def test_ranges_are_equal_and_keep_the_order(count: int) -> None:
    tags = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 40_000)
    marks = np.arange(40_000)
    sizes = np.bincount(ranges_of(tags, count), minlength=count)
    assert sizes.max() < 2.2 * 40_000 / count
    seen = 0
    for number, part in by_range(Showings(tags, marks), count):
        assert (ranges_of(part.tags, count) == number).all()
        assert (part.marks[1:] > part.marks[:-1]).all()
        assert (tags[part.marks] == part.tags).all()
        seen += len(part.tags)
    assert seen == 40_000
