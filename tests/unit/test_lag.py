"""Lag: records not finished with and how long the oldest waits, also what was not read yet."""

from dataclasses import dataclass, field

import pytest

from detector.streaming.lag import LagTracker
from exporters.worker_state import InputState
from ingest.broker import BrokerRecord, TopicPartition

AT = TopicPartition("sequences", 3)
OTHER = TopicPartition("runtime", 3)


@dataclass
class Broker:
    """Where partitions end and what time it is, as a test sets them."""

    ends: dict[TopicPartition, int] = field(default_factory=dict)
    now_s: float = 100.0

    def end_of(self, at: TopicPartition) -> int | None:
        return self.ends.get(at)

    def clock(self) -> float:
        return self.now_s


@pytest.fixture
def broker() -> Broker:
    return Broker({AT: 5, OTHER: 0})


@pytest.fixture
def tracker(broker: Broker) -> LagTracker:
    tracker = LagTracker(broker.end_of, now_s=broker.clock)
    tracker.assign([AT, OTHER], {AT: 5})
    return tracker


def record(offset: int, sent_s: float) -> BrokerRecord:
    return BrokerRecord(AT.topic, AT.partition, offset, None, b"", (), int(sent_s * 1000))


def state(tracker: LagTracker, at: TopicPartition = AT) -> InputState:
    return next(one for one in tracker.states() if (one.topic, one.partition) == at)


def lag(tracker: LagTracker) -> tuple[int | None, float | None]:
    one = state(tracker)
    return one.lag_records, one.lag_seconds


def test_without_anything_to_read_there_is_no_lag(tracker: LagTracker) -> None:
    assert lag(tracker) == (0, 0.0)
    assert state(tracker, OTHER).lag_records == 0


def test_a_taken_record_lags_until_it_is_done(tracker: LagTracker, broker: Broker) -> None:
    broker.ends[AT] = 7
    tracker.take([record(5, 98.0), record(6, 99.0)])
    assert lag(tracker) == (2, 2.0)
    tracker.done({AT: 6})
    assert lag(tracker) == (1, 1.0)
    tracker.done({AT: 7})
    assert lag(tracker) == (0, 0.0)


def test_a_backlog_is_as_old_as_the_record_read_last(tracker: LagTracker, broker: Broker) -> None:
    broker.ends[AT] = 1_000
    tracker.take([record(5, 40.0)])
    tracker.done({AT: 6})
    assert lag(tracker) == (994, 60.0)


def test_a_backlog_of_which_nothing_was_read_is_of_unknown_age(
    tracker: LagTracker, broker: Broker
) -> None:
    broker.ends[AT] = 1_000
    assert lag(tracker) == (995, None)


def test_after_a_pause_only_the_time_since_it_ended_counts(
    tracker: LagTracker, broker: Broker
) -> None:
    tracker.take([record(5, 98.0)])
    tracker.done({AT: 6})
    broker.ends[AT] = 6
    broker.now_s = 3_600.0
    assert lag(tracker) == (0, 0.0)
    broker.ends[AT] = 7
    broker.now_s = 3_602.0
    assert lag(tracker) == (1, 2.0)


def test_a_runner_that_found_nothing_to_read_was_up_to_date(
    tracker: LagTracker, broker: Broker
) -> None:
    tracker.take([record(5, 98.0)])
    tracker.done({AT: 6})
    broker.now_s = 3_600.0
    tracker.idle(AT.partition)
    broker.ends[AT] = 7
    broker.now_s = 3_601.0
    assert lag(tracker) == (1, 1.0)


def test_records_that_rebuild_a_window_are_no_lag(tracker: LagTracker) -> None:
    tracker.take([record(2, 10.0), record(3, 11.0)])
    assert lag(tracker) == (0, 0.0)


def test_an_end_that_is_not_known_leaves_the_lag_unknown(
    tracker: LagTracker, broker: Broker
) -> None:
    del broker.ends[AT]
    assert lag(tracker) == (None, None)


def test_a_partition_that_has_left_is_not_told(tracker: LagTracker) -> None:
    tracker.revoke(AT.partition)
    assert tracker.states() == []
    tracker.take([record(5, 98.0)])
    tracker.done({AT: 6})
    assert tracker.states() == []
