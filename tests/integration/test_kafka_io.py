"""What only a real broker can do to us: die, come back, freeze, forget; and how we take it."""

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from detector.errors import BrokerError
from ingest.broker import Message, TopicPartition
from ingest.kafka_io import KafkaPublisher, KafkaReader
from ingest.kafka_settings import KafkaSettings
from tests.contract.reading import collect
from tests.kafka.cluster import KafkaServer, running

QUICK = {
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
    "log.segment.delete.delay.ms": "0",
}
"""Retention at work within a second: Kafka looks every five minutes otherwise."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """Give a node that the tests of this file may kill; it runs again after each."""
    with running(tmp_path_factory.mktemp("mortal-kafka"), more=QUICK) as server:
        yield server


@pytest.fixture
def topic(server: KafkaServer, topic_prefix: str) -> str:
    return make(server, topic_prefix)


def make(server: KafkaServer, topic: str, **configs: str) -> str:
    named = {key.replace("_", "."): value for key, value in configs.items()}
    named |= {"max.message.bytes": "4194304"}
    client = KafkaAdminClient(bootstrap_servers=server.bootstrap)
    spec = {"num_partitions": 1, "replication_factor": 1, "configs": named}
    client.create_topics({topic: spec}, wait_for_metadata=True)
    client.close()
    return topic


def settings(server: KafkaServer, **changes: int) -> KafkaSettings:
    return KafkaSettings(bootstrap_servers=server.bootstrap, connect_timeout_ms=2_000).model_copy(
        update=changes
    )


def values(server: KafkaServer, topic: str, count: int) -> list[bytes | None]:
    reader = KafkaReader(settings(server))
    reader.assign({TopicPartition(topic, 0): 0})
    found = [record.value for record in collect(reader, count)]
    reader.close()
    return found


def test_a_broker_that_is_killed_loses_and_doubles_nothing(server: KafkaServer, topic: str) -> None:
    publisher = KafkaPublisher(settings(server))
    futures = []
    for number in range(600):
        futures.append(publisher.send(Message(topic, b"%d" % number, b"k")))
        time.sleep(0.002)
        if number == 300:
            server.kill()
    server.start()
    publisher.flush(60)
    assert [future.result() for future in futures] == list(range(600))
    publisher.close()
    assert values(server, topic, 600) == [b"%d" % number for number in range(600)]


def test_a_reader_goes_on_after_the_broker_was_away(server: KafkaServer, topic: str) -> None:
    reader = KafkaReader(settings(server))
    reader.assign({TopicPartition(topic, 0): 0})
    for number in range(2):
        publisher = KafkaPublisher(settings(server))
        publisher.send(Message(topic, b"%d" % number, b"k")).result(timeout=20)
        publisher.close()
        assert [record.value for record in collect(reader, 1)] == [b"%d" % number]
        if number == 0:
            server.stop()
            assert list(reader.poll(0.5)) == []
            server.start()
    reader.close()


def test_a_broker_that_stays_away_is_an_error_in_time(server: KafkaServer, topic: str) -> None:
    given = settings(server, delivery_timeout_ms=3_000)
    publisher, reader = KafkaPublisher(given), KafkaReader(given)
    publisher.send(Message(topic, b"x", b"k")).result(timeout=10)
    assert reader.end(TopicPartition(topic, 0)) == 1
    server.kill()
    started = time.monotonic()
    lost = publisher.send(Message(topic, b"x", b"k"))
    with pytest.raises(BrokerError, match="did not answer in time"):
        publisher.flush(0.5)
    with pytest.raises(BrokerError, match="did not answer in time"):
        lost.result(timeout=10)
    with pytest.raises(BrokerError, match="not acknowledged"):
        publisher.flush(1)
    with pytest.raises(BrokerError, match="did not answer in time"):
        reader.end(TopicPartition(topic, 0))
    with pytest.raises(BrokerError, match="did not answer in time"):
        reader.offset_at(TopicPartition(topic, 0), 0)
    with pytest.raises(BrokerError, match="nothing listens there"):
        KafkaPublisher(given)
    assert time.monotonic() - started < 40
    # What these two go on logging is not taken for the reason of another.
    with pytest.raises(BrokerError, match="the host name cannot be resolved"):
        KafkaReader(given.model_copy(update={"bootstrap_servers": "no-such-host.invalid:9092"}))
    publisher.close()
    reader.close()
    server.start()


def test_closing_does_not_wait_for_a_broker_that_is_away(server: KafkaServer, topic: str) -> None:
    before = set(threading.enumerate())
    publisher, reader = KafkaPublisher(settings(server)), KafkaReader(settings(server))
    publisher.send(Message(topic, b"x", b"k")).result(timeout=10)
    server.freeze()
    lost = publisher.send(Message(topic, b"x", b"k"))
    started = time.monotonic()
    publisher.close()
    reader.close()
    assert time.monotonic() - started < 20
    assert isinstance(lost.exception(timeout=1), BrokerError)
    server.thaw()
    assert set(threading.enumerate()) <= before


def test_senders_wait_while_the_broker_is_frozen(server: KafkaServer, topic: str) -> None:
    publisher = KafkaPublisher(settings(server, in_flight_bytes=500_000))
    value = os.urandom(100_000)
    publisher.send(Message(topic, value, b"k")).result(timeout=10)
    server.freeze()
    sent: list[Future[int]] = []

    def send() -> None:
        sent.extend(publisher.send(Message(topic, value, b"k")) for _ in range(20))

    sender = threading.Thread(target=send)
    sender.start()
    sender.join(1.5)
    assert sender.is_alive()
    assert len(sent) <= 5
    server.thaw()
    sender.join(20)
    publisher.flush(20)
    assert [future.result() for future in sent] == list(range(1, 21))
    publisher.close()


def test_a_record_of_almost_the_largest_size_passes(server: KafkaServer, topic: str) -> None:
    value = os.urandom(4 * 2**20 - 1_000)
    publisher = KafkaPublisher(settings(server))
    publisher.send(Message(topic, value, b"k")).result(timeout=20)
    publisher.close()
    assert values(server, topic, 1) == [value]


def test_a_topic_that_takes_less_than_we_send_is_told(server: KafkaServer, topic: str) -> None:
    small = make(server, f"{topic}-small", max_message_bytes="1048588")
    publisher = KafkaPublisher(settings(server, max_message_bytes=8 * 2**20))
    refused = publisher.send(Message(small, os.urandom(5_000_000), b"k"))
    with pytest.raises(BrokerError, match="larger than the cluster"):
        refused.result(timeout=20)
    publisher.close()


def test_offsets_are_found_by_the_time_that_the_sender_gave(
    server: KafkaServer, topic: str
) -> None:
    client = KafkaProducer(bootstrap_servers=server.bootstrap)
    hour_ago = int(time.time() * 1000) - 3_600_000
    for minutes in (0, 10, 5, 20):
        client.send(topic, b"x", timestamp_ms=hour_ago + minutes * 60_000)
    client.close()
    reader = KafkaReader(settings(server))
    at = TopicPartition(topic, 0)
    found = [reader.offset_at(at, hour_ago + minutes * 60_000) for minutes in (0, 1, 11, 20, 21)]
    assert found == [0, 1, 3, 3, None]
    reader.close()


def test_what_retention_has_deleted_is_skipped(server: KafkaServer, topic_prefix: str) -> None:
    topic = make(server, topic_prefix, retention_ms="1000", segment_ms="500")
    at = TopicPartition(topic, 0)
    publisher, reader = KafkaPublisher(settings(server)), KafkaReader(settings(server))
    publisher.send(Message(topic, b"old", b"k")).result(timeout=10)
    deadline = time.monotonic() + 30
    while reader.beginning(at) == 0 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert (reader.beginning(at), reader.end(at)) == (1, 1)
    publisher.send(Message(topic, b"new", b"k")).result(timeout=10)
    reader.assign({at: 0})
    assert [record.value for record in collect(reader, 1)] == [b"new"]
    publisher.close()
    reader.close()
