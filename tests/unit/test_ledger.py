"""The ledger of a worker: what is given to the handler, and what may be committed."""

import pytest

from detector.errors import StreamError
from ingest.broker import BrokerRecord, TopicPartition
from ingest.ledger import Held, Ledger

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Time:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def record(at: TopicPartition, offset: int) -> BrokerRecord:
    return BrokerRecord(at.topic, at.partition, offset, None, b"", (), 0)


def placed(committed: int | None = 10, start: int = 4) -> tuple[Ledger, Held]:
    ledger = Ledger(["a", "b"])
    known = {} if committed is None else {A: committed, B: 0}
    ledger.place(0, {A: start, B: 0}, known)
    held = ledger.get(0)
    assert held is not None
    return ledger, held


def test_a_record_is_taken_once() -> None:
    ledger, _ = placed()
    assert ledger.accept(record(A, 4))
    assert not ledger.accept(record(A, 4))
    assert not ledger.accept(record(A, 3))
    assert ledger.accept(record(A, 7))
    assert ledger.positions(0) == {A: 8, B: 0}
    held = ledger.get(0)
    assert held is not None
    assert held.inputs["a"].missing == 2


def test_a_partition_that_is_not_held_is_refused() -> None:
    ledger, _ = placed()
    with pytest.raises(StreamError, match="never placed"):
        ledger.accept(record(TopicPartition("a", 1), 0))


def test_only_what_was_read_can_be_done() -> None:
    ledger, held = placed()
    for offset in range(4, 12):
        ledger.accept(record(A, offset))
    ledger.finish(held, 0, {A: 11})
    assert ledger.finished() == {A: 11, B: 0}
    with pytest.raises(StreamError, match="never read"):
        ledger.finish(held, 0, {A: 13})
    assert ledger.finished() == {A: 11, B: 0}


def test_what_is_done_never_goes_back() -> None:
    ledger, held = placed()
    ledger.accept(record(A, 4))
    ledger.finish(held, 0, {A: 5})
    assert ledger.finished()[A] == 10, "a window being rebuilt finishes nothing"


def test_nothing_done_is_nothing_to_commit() -> None:
    ledger, held = placed(committed=None)
    assert ledger.finished() == {}
    ledger.accept(record(A, 4))
    ledger.finish(held, 0, {A: 5})
    assert ledger.finished() == {A: 5}


def test_what_a_lost_partition_finishes_is_ignored() -> None:
    ledger, held = placed()
    ledger.drop(0)
    ledger.place(0, {A: 4, B: 0}, {A: 10})
    ledger.finish(held, 0, {A: 12})
    assert ledger.finished() == {A: 10}


def test_it_goes_on_unless_others_have_finished_more() -> None:
    ledger, held = placed()
    for offset in range(4, 12):
        ledger.accept(record(A, offset))
    ledger.finish(held, 0, {A: 12})
    assert ledger.continues(0, {A: 10, B: 0}), "a commit of ours may have failed"
    assert ledger.continues(0, {A: 12, B: 0})
    assert not ledger.continues(0, {A: 13, B: 0})
    assert not ledger.continues(0, {A: 12, B: 1})
    assert not ledger.continues(1, {})


def test_a_window_is_warm_once_all_below_the_committed_is_read() -> None:
    clock = Time()
    ledger = Ledger(["a", "b"], clock)
    ledger.place(0, {A: 8, B: 5}, {A: 10, B: 6})
    for at, offset in ((A, 8), (A, 9), (A, 10)):
        clock.now += 1
        ledger.accept(record(at, offset))
        assert ledger.newly_warm() == []
    ledger.accept(record(B, 5))
    assert ledger.newly_warm() == [(0, 3.0, 3)]
    assert ledger.newly_warm() == []
