"""What only the broker in memory does: it is bounded, and its clock is given."""

import threading
import time

import pytest

from detector.errors import BrokerError
from ingest.broker import Message, TopicPartition
from ingest.in_flight import MESSAGE_BYTES, InFlight
from ingest.memory_io import RECORD_BYTES, MemoryBroker

AT = TopicPartition("t", 0)


def test_a_partition_keeps_the_newest_up_to_its_bytes() -> None:
    broker = MemoryBroker({"t": 1}, keep_bytes=100 * (RECORD_BYTES + 10))
    publisher, reader = broker.publisher(), broker.reader()
    for number in range(1_000):
        publisher.send(Message("t", b"%010d" % number))
        kept = reader.end(AT) - reader.beginning(AT)
        assert kept <= 100
    assert reader.end(AT) == 1_000
    assert 87 <= reader.end(AT) - reader.beginning(AT) <= 100
    reader.assign({AT: reader.beginning(AT)})
    assert [int(r.value or b"") for r in reader.poll(0)] == list(range(reader.beginning(AT), 1_000))


def test_a_reader_that_is_left_behind_goes_on_at_the_first_that_is_kept() -> None:
    broker = MemoryBroker({"t": 1}, keep_bytes=10 * (RECORD_BYTES + 1))
    publisher, reader = broker.publisher(), broker.reader()
    reader.assign({AT: 0})
    publisher.send(Message("t", b"x"))
    assert [record.offset for record in reader.poll(0)] == [0]
    for _ in range(50):
        publisher.send(Message("t", b"x"))
    offsets = [record.offset for record in reader.poll(0)]
    assert offsets == list(range(reader.beginning(AT), 51))


def test_a_record_that_is_larger_than_the_bound_is_kept_alone() -> None:
    broker = MemoryBroker({"t": 1}, keep_bytes=1_000)
    publisher, reader = broker.publisher(), broker.reader()
    publisher.send(Message("t", b"small"))
    publisher.send(Message("t", b"x" * 2_000))
    assert (reader.beginning(AT), reader.end(AT)) == (1, 2)


def test_records_are_stamped_by_the_clock_that_is_given() -> None:
    now_s = 1_000.5
    broker = MemoryBroker({"t": 1}, now_s=lambda: now_s)
    publisher, reader = broker.publisher(), broker.reader()
    for seconds in (1, 5, 3):
        now_s = 1_000.5 + seconds
        publisher.send(Message("t", b"x"))
    reader.assign({AT: 0})
    assert [r.timestamp_ms for r in reader.poll(0)] == [1_001_500, 1_005_500, 1_003_500]
    # A clock that goes back changes no order: the first that is late enough counts.
    assert reader.offset_at(AT, 1_002_000) == 1
    assert reader.offset_at(AT, 1_006_000) is None


def test_a_busy_partition_does_not_keep_another_waiting() -> None:
    broker = MemoryBroker({"t": 2})
    publisher, reader = broker.publisher(), broker.reader()
    reader.assign({AT: 0, TopicPartition("t", 1): 0})
    for _ in range(5_000):
        publisher.send(Message("t", b"x", partition=0))
    publisher.send(Message("t", b"x", partition=1))
    partitions = [{record.partition for record in reader.poll(0)} for _ in range(2)]
    assert 1 in partitions[0] | partitions[1]


def test_a_topic_that_was_not_named_is_an_error() -> None:
    broker = MemoryBroker({"t": 1})
    with pytest.raises(BrokerError, match="no such topic"):
        broker.reader().assign({TopicPartition("u", 0): 0})


def test_senders_wait_until_enough_is_acknowledged() -> None:
    bound = InFlight(3 * (MESSAGE_BYTES + 100))
    for _ in range(3):
        bound.enter(100)
    entered = threading.Event()

    def enter() -> None:
        bound.enter(100)
        entered.set()

    waiting = threading.Thread(target=enter)
    waiting.start()
    assert not entered.wait(0.1)
    bound.leave(100)
    assert entered.wait(5)
    waiting.join()
    assert bound.used == 3 * (MESSAGE_BYTES + 100)


def test_a_message_larger_than_the_bound_goes_alone() -> None:
    bound = InFlight(10)
    bound.enter(1_000_000)
    assert bound.used == 1_000_000 + MESSAGE_BYTES
    bound.leave(1_000_000)
    assert bound.used == 0


def test_many_threads_send_and_no_offset_is_given_twice() -> None:
    broker = MemoryBroker({"t": 1})
    offsets: list[int] = []

    def send() -> None:
        publisher = broker.publisher()
        for _ in range(500):
            offsets.append(publisher.send(Message("t", b"x")).result())
            time.sleep(0)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(offsets) == list(range(2_000))
