"""What a publisher promises, on every broker: acknowledgement, place, order, refusal."""

import pytest

from detector.errors import BrokerError
from ingest.broker import Message
from tests.contract.conftest import MAX_MESSAGE_BYTES, Broker
from tests.contract.reading import read_all


def test_an_acknowledged_message_is_read_as_it_was_sent(broker: Broker) -> None:
    headers = (
        ("bleedwatch-schema", b"sequence/1"),
        ("empty", b""),
        ("twice", b"1"),
        ("twice", b"2"),
    )
    message = Message(broker.topic, bytes(range(256)), b"pool-a", headers)
    offset = broker.publisher().send(message).result(timeout=10)
    (record,) = read_all(broker, 1)
    assert offset == record.offset == 0
    assert (record.key, record.value, record.headers) == (message.key, message.value, headers)
    assert record.topic == broker.topic


def test_a_key_without_a_value_is_a_message(broker: Broker) -> None:
    broker.publisher().send(Message(broker.topic, None, b"gone")).result(timeout=10)
    (record,) = read_all(broker, 1)
    assert (record.key, record.value) == (b"gone", None)


JAVA_HASHES = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}
"""What murmur2 of Kafka's Java client gives, from its own tests."""


@pytest.mark.parametrize("key", JAVA_HASHES)
def test_a_key_decides_the_partition_as_in_the_java_client(broker: Broker, key: bytes) -> None:
    broker.publisher().send(Message(broker.topic, b"x", key)).result(timeout=10)
    (record,) = read_all(broker, 1)
    assert record.partition == (JAVA_HASHES[key] & 0x7FFFFFFF) % broker.partitions


def test_a_partition_that_is_named_wins_over_the_key(broker: Broker) -> None:
    publisher = broker.publisher()
    for partition in range(broker.partitions):
        sent = publisher.send(Message(broker.topic, b"x", b"21", partition=partition))
        assert sent.result(timeout=10) == 0
    assert sorted(r.partition for r in read_all(broker, 3)) == [0, 1, 2]


def test_messages_without_a_key_all_arrive(broker: Broker) -> None:
    publisher = broker.publisher()
    for number in range(50):
        publisher.send(Message(broker.topic, b"%d" % number))
    publisher.flush(10)
    assert sorted(int(r.value or b"") for r in read_all(broker, 50)) == list(range(50))


def test_messages_of_a_key_stay_in_order(broker: Broker) -> None:
    publisher = broker.publisher()
    futures = [
        publisher.send(Message(broker.topic, b"%d" % number, b"pool-%d" % (number % 7)))
        for number in range(700)
    ]
    publisher.flush(20)
    assert all(future.done() for future in futures)
    records = read_all(broker, 700)
    for key in {record.key for record in records}:
        values = [int(record.value or b"") for record in records if record.key == key]
        assert values == sorted(values)
        assert len(values) == 100


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"value": b"x" * (MAX_MESSAGE_BYTES + 1000)}, "larger"),
        ({"partition": 99}, "no .*partition"),
        ({"partition": -1}, "partition"),
        ({"value": None, "key": None}, "neither key nor value"),
    ],
    ids=["too large", "no such partition", "negative partition", "nothing"],
)
def test_what_cannot_be_sent_fails_its_future_alone(
    broker: Broker, change: dict[str, object], reason: str
) -> None:
    publisher = broker.publisher()
    good = Message(broker.topic, b"x", b"k")
    publisher.send(good).result(timeout=10)
    refused = publisher.send(Message(**{**good._asdict(), **change}))
    with pytest.raises(BrokerError, match=reason) as caught:
        refused.result(timeout=10)
    assert broker.topic in caught.value.where
    assert publisher.send(good).result(timeout=10) == 1


def test_flush_tells_of_what_failed_since_the_last(broker: Broker) -> None:
    publisher = broker.publisher()
    publisher.send(Message(broker.topic, b"x", b"k", partition=99))
    with pytest.raises(BrokerError, match="1 message"):
        publisher.flush(10)
    publisher.flush(10)


def test_a_topic_that_does_not_exist_is_an_error(broker: Broker) -> None:
    message = Message(f"{broker.topic}.no", b"x", b"k")
    with pytest.raises(BrokerError, match="no such topic"):
        broker.publisher().send(message).result(timeout=10)


def test_a_closed_publisher_takes_nothing(broker: Broker) -> None:
    publisher = broker.publisher()
    publisher.send(Message(broker.topic, b"x", b"k"))
    publisher.close()
    with pytest.raises(BrokerError, match="closed"):
        publisher.send(Message(broker.topic, b"y", b"k")).result(timeout=10)
    assert [record.value for record in read_all(broker, 1)] == [b"x"]


def test_an_error_never_holds_what_was_sent(broker: Broker) -> None:
    secret = b"tenant-secret" * 200_000
    message = Message(broker.topic, secret, b"key-secret", (("header-secret", b"secret"),))
    error = broker.publisher().send(message).exception(timeout=10)
    assert isinstance(error, BrokerError)
    assert "secret" not in f"{error} {error!r} {error.__cause__!r} {error.__context__!r}"
