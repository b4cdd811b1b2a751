"""From where a partition is read again: event time decides, over all its inputs."""

from collections.abc import Mapping

from ingest.broker import BrokerRecord, Message, TopicPartition
from ingest.memory_io import MemoryBroker
from ingest.rewind import rewind

WINDOW_MS = 300
LEAD, SIDE = TopicPartition("lead", 0), TopicPartition("side", 0)


def broker(lead: list[int], side: list[int], *, keep_bytes: int = 1 << 20) -> MemoryBroker:
    """Return a broker with records sent at these milliseconds, which are their event times."""
    now = [0.0]
    made = MemoryBroker({"lead": 1, "side": 1}, now_s=lambda: now[0], keep_bytes=keep_bytes)
    for at, times in ((LEAD, lead), (SIDE, side)):
        for time_ms in times:
            now[0] = time_ms / 1000
            made.append(Message(at.topic, str(time_ms).encode(), partition=0))
    return made


def positions(of: MemoryBroker, committed: Mapping[TopicPartition, int]) -> tuple[int, int]:
    def warm_from_ms(newest: BrokerRecord) -> int:
        return int(newest.value or b"") - WINDOW_MS

    found = rewind(
        of.reader(), 0, topics=["lead", "side"], committed=committed, warm_from_ms=warm_from_ms
    )
    return found[LEAD], found[SIDE]


TIMES = list(range(0, 2000, 100))


def test_the_window_before_the_last_finished_record_is_read_again() -> None:
    of = broker(TIMES, TIMES)
    assert positions(of, {LEAD: 15, SIDE: 15}) == (11, 11), "1400 - 300 ms"


def test_a_long_stop_changes_nothing() -> None:
    of = broker([*TIMES, *range(3_600_000, 3_601_000, 100)], TIMES)
    assert positions(of, {LEAD: 20, SIDE: 20}) == (16, 16)


def test_nothing_committed_is_read_from_the_beginning() -> None:
    assert positions(broker(TIMES, TIMES), {}) == (0, 0)


def test_without_a_finished_leading_record_all_is_read() -> None:
    assert positions(broker(TIMES, TIMES), {SIDE: 15}) == (0, 0)


def test_an_input_that_was_never_committed_is_read_from_its_beginning() -> None:
    assert positions(broker(TIMES, TIMES), {LEAD: 15}) == (0, 0)


def test_an_input_that_is_behind_pulls_the_window_back() -> None:
    of = broker(TIMES, TIMES)
    assert positions(of, {LEAD: 15, SIDE: 9}) == (6, 6), "900 - 300 ms"


def test_an_input_that_is_finished_does_not_though_it_is_old() -> None:
    of = broker(TIMES, [0, 100])
    assert positions(of, {LEAD: 15, SIDE: 2}) == (11, 2)


def test_a_position_is_never_above_the_committed_one() -> None:
    of = broker([0, 100, 5000], [4000])
    assert positions(of, {LEAD: 2, SIDE: 0})[0] == 0


def test_what_is_no_longer_kept_is_not_asked_for() -> None:
    of = broker(TIMES, TIMES, keep_bytes=10 * 104)
    first = of.reader().beginning(LEAD)
    assert 0 < first < 20
    assert positions(of, {LEAD: first, SIDE: first}) == (first, first)
    assert positions(of, {LEAD: first + 1, SIDE: first + 1}) == (first, first)
