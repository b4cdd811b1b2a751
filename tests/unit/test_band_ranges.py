"""What an owner of band ranges holds: meetings, expiry, bounds, ranges that come and go."""

import numpy as np
import pytest

from detector.index.band_ranges import MOST_OF_A_BAND, RESPONSE_BYTES, BandRanges
from detector.index.response_sketch import ResponseSketch

KEEP_MS = 1_000
PLENTY = 1_000 * RESPONSE_BYTES


def sketch(request: str, at_ms: int, *bands: int) -> ResponseSketch:
    """Return the sketch of a response with these bands and nothing else."""
    return ResponseSketch(
        tenant="a", request_id=request, kv_pool="p", engine="e", model="m", party=1,
        started_at_ms=at_ms, ended_at_ms=at_ms, tokens=0, bigrams=0, unexplained=0, values=b"",
        explained=b"", bands=np.array(bands, "<i8").tobytes(),
    )  # fmt: skip


@pytest.fixture
def ranges() -> BandRanges:
    made = BandRanges(keep_ms=KEEP_MS, memory_bytes=PLENTY)
    made.own(0)
    return made


def names(found: list[ResponseSketch]) -> list[str]:
    return [one.request_id for one in found]


def test_who_shares_a_band_meets(ranges: BandRanges) -> None:
    one, other, third = sketch("1", 0, 7, 8), sketch("2", 1, 8, 9), sketch("3", 2, 10)
    assert [ranges.add(0, each) for each in (one, other, third)] == [False, True, False]
    assert names(ranges.near(one)) == ["2"]
    assert names(ranges.near(third)) == []


def test_what_is_known_meets_nobody_again(ranges: BandRanges) -> None:
    ranges.add(0, sketch("1", 0, 7))
    assert ranges.add(0, sketch("2", 1, 7))
    assert not ranges.add(0, sketch("2", 1, 7))
    assert len(ranges) == 2


def test_bands_of_all_ranges_count(ranges: BandRanges) -> None:
    ranges.own(1)
    ranges.add(0, sketch("1", 0, 7))
    ranges.add(1, sketch("1", 0, 8))
    assert not ranges.add(0, sketch("2", 1, 9))
    assert ranges.add(1, sketch("2", 1, 8))
    assert names(ranges.near(sketch("1", 0))) == ["2"]
    assert len(ranges) == 2
    ranges.disown(1)
    assert names(ranges.near(sketch("1", 0))) == []


def test_a_range_that_comes_back_begins_empty_and_learns_again(ranges: BandRanges) -> None:
    ranges.add(0, sketch("1", 0, 7))
    ranges.disown(0)
    ranges.own(0)
    assert not ranges.add(0, sketch("2", 1, 7))
    assert ranges.add(0, sketch("1", 0, 7))


def test_it_expires_by_event_time(ranges: BandRanges) -> None:
    ranges.add(0, sketch("1", 0, 7))
    assert ranges.add(0, sketch("2", KEEP_MS, 7))
    assert not ranges.add(0, sketch("3", 2 * KEEP_MS + 1, 7))
    assert not ranges.add(0, sketch("4", 0, 7)), "too late"
    assert len(ranges) == 1
    assert not ranges.evicted


def test_memory_is_bounded_and_what_is_given_up_counted() -> None:
    ranges = BandRanges(keep_ms=KEEP_MS, memory_bytes=3 * RESPONSE_BYTES)
    ranges.own(0)
    for number in range(10):
        ranges.add(0, sketch(str(number), number, 7, 100 + number))
    assert len(ranges) == 3
    assert ranges.evicted == 7
    assert names(ranges.near(sketch("9", 9))) == ["7", "8"]


def test_a_known_response_in_another_range_takes_no_room() -> None:
    ranges = BandRanges(keep_ms=KEEP_MS, memory_bytes=2 * RESPONSE_BYTES)
    for partition in (0, 1):
        ranges.own(partition)
    for partition in (0, 1):
        for number in range(2):
            ranges.add(partition, sketch(str(number), number, 7))
    assert (len(ranges), ranges.evicted) == (2, 0)


def test_a_band_that_all_share_stays_short(ranges: BandRanges) -> None:
    for number in range(3 * MOST_OF_A_BAND):
        ranges.add(0, sketch(str(number), number, 7))
    assert len(ranges.near(sketch(str(number), number))) == MOST_OF_A_BAND - 1
    assert len(ranges.near(sketch("0", 0))) == MOST_OF_A_BAND
    assert not ranges.add(0, sketch("late", 9 * KEEP_MS, 7))
    assert len(ranges) == 1
