"""What a reader promises, on every broker: positions, order, offsets, time-stamps."""

import threading
import time

import pytest

from detector.errors import BrokerError
from ingest.broker import Message, TopicPartition
from tests.contract.conftest import Broker
from tests.contract.reading import collect


def send(broker: Broker, count: int, *, partition: int = 0) -> None:
    publisher = broker.publisher()
    for number in range(count):
        publisher.send(Message(broker.topic, b"%d" % number, partition=partition))
    publisher.flush(20)


def test_it_knows_the_partitions_of_a_topic(broker: Broker) -> None:
    assert broker.reader().partitions(broker.topic) == broker.partitions
    with pytest.raises(BrokerError, match="no such topic"):
        broker.reader().partitions(f"{broker.topic}.no")


def test_it_reads_what_is_assigned_from_where_it_is_told(broker: Broker) -> None:
    send(broker, 10, partition=1)
    send(broker, 3, partition=2)
    reader = broker.reader()
    reader.assign({TopicPartition(broker.topic, 1): 6})
    assert [record.offset for record in collect(reader, 4)] == [6, 7, 8, 9]
    reader.assign({TopicPartition(broker.topic, 2): 0, TopicPartition(broker.topic, 1): 9})
    assert sorted((r.partition, r.offset) for r in collect(reader, 4)) == [
        (1, 9),
        (2, 0),
        (2, 1),
        (2, 2),
    ]


def test_it_goes_on_where_it_stopped(broker: Broker) -> None:
    reader = broker.reader()
    reader.assign({TopicPartition(broker.topic, 0): 0})
    for _ in range(3):
        send(broker, 5)
        collect(reader, 5)
    assert [record.value for record in collect(reader, 0)] == []


def test_partitions_of_many_records_are_read_in_order_and_in_turn(broker: Broker) -> None:
    send(broker, 2_000, partition=0)
    send(broker, 5, partition=1)
    reader = broker.reader()
    reader.assign({TopicPartition(broker.topic, 0): 0, TopicPartition(broker.topic, 1): 0})
    records = collect(reader, 2_005)
    busy = [record.offset for record in records if record.partition == 0]
    assert busy == list(range(2_000))
    assert [record.offset for record in records if record.partition == 1] == list(range(5))


def test_poll_waits_for_what_comes(broker: Broker) -> None:
    reader = broker.reader()
    reader.assign({TopicPartition(broker.topic, 0): 0})
    assert list(reader.poll(0)) == []
    later = threading.Timer(0.3, send, (broker, 1))
    later.start()
    started = time.monotonic()
    found = reader.poll(10)
    later.join()
    assert len(found) == 1
    assert time.monotonic() - started < 5


def test_poll_without_partitions_gives_nothing_in_time(broker: Broker) -> None:
    started = time.monotonic()
    assert list(broker.reader().poll(0.2)) == []
    assert time.monotonic() - started < 2


def test_two_readers_have_positions_of_their_own(broker: Broker) -> None:
    send(broker, 3)
    first, second = broker.reader(), broker.reader()
    first.assign({TopicPartition(broker.topic, 0): 0})
    second.assign({TopicPartition(broker.topic, 0): 2})
    assert len(collect(first, 3)) == 3
    assert [record.offset for record in collect(second, 1)] == [2]


def test_it_knows_where_a_partition_begins_and_ends(broker: Broker) -> None:
    at = TopicPartition(broker.topic, 2)
    reader = broker.reader()
    assert (reader.beginning(at), reader.end(at)) == (0, 0)
    send(broker, 7, partition=2)
    assert (reader.beginning(at), reader.end(at)) == (0, 7)


def test_it_finds_an_offset_by_the_time_of_sending(broker: Broker) -> None:
    at = TopicPartition(broker.topic, 0)
    reader = broker.reader()
    assert reader.offset_at(at, 0) is None
    for _ in range(3):
        send(broker, 2)
        time.sleep(0.05)
    reader.assign({at: 0})
    records = collect(reader, 6)
    stamps = [record.timestamp_ms for record in records]
    assert abs(stamps[-1] - time.time() * 1000) < 60_000
    assert reader.offset_at(at, 0) == 0
    assert reader.offset_at(at, -60_000) == 0
    for stamp in stamps:
        assert reader.offset_at(at, stamp) == stamps.index(stamp)
    assert reader.offset_at(at, stamps[1] + 1) == 2
    assert reader.offset_at(at, stamps[-1] + 1) is None


def test_a_partition_that_does_not_exist_is_an_error(broker: Broker) -> None:
    reader = broker.reader()
    for partition in (broker.partitions, -1):
        at = TopicPartition(broker.topic, partition)
        with pytest.raises(BrokerError, match="no partition"):
            reader.assign({at: 0})
        with pytest.raises(BrokerError, match="no partition"):
            reader.end(at)
        with pytest.raises(BrokerError, match="no partition"):
            reader.beginning(at)
        with pytest.raises(BrokerError, match="no partition"):
            reader.offset_at(at, 0)


def test_two_publishers_and_a_reader_work_at_the_same_time(broker: Broker) -> None:
    senders = [
        threading.Thread(target=send, args=(broker, 400), kwargs={"partition": number % 2})
        for number in range(4)
    ]
    reader = broker.reader()
    reader.assign({TopicPartition(broker.topic, 0): 0, TopicPartition(broker.topic, 1): 0})
    for sender in senders:
        sender.start()
    records = collect(reader, 1_600)
    for sender in senders:
        sender.join()
    for partition in (0, 1):
        offsets = [record.offset for record in records if record.partition == partition]
        assert offsets == list(range(800))
