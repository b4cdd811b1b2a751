"""The brokers that keep the contract: one in memory, and a real Kafka."""

from collections.abc import Iterator
from typing import Protocol

import pytest
from kafka import KafkaAdminClient

from ingest.broker import Publisher, Reader
from ingest.kafka_io import KafkaPublisher, KafkaReader
from ingest.kafka_settings import KafkaSettings
from ingest.memory_io import MemoryBroker

MAX_MESSAGE_BYTES = 2 * 2**20


class Broker(Protocol):
    """What the tests need of a broker: a topic of their own, and any number of ends."""

    topic: str
    partitions: int

    def publisher(self) -> Publisher: ...

    def reader(self) -> Reader: ...


class Memory:
    def __init__(self, topic: str, partitions: int) -> None:
        self.topic = topic
        self.partitions = partitions
        self._broker = MemoryBroker({topic: partitions}, max_message_bytes=MAX_MESSAGE_BYTES)

    def publisher(self) -> Publisher:
        return self._broker.publisher()

    def reader(self) -> Reader:
        return self._broker.reader()

    def close(self) -> None:
        """Nothing lives on."""


class Kafka:
    def __init__(self, address: str, topic: str, partitions: int) -> None:
        self.topic = topic
        self.partitions = partitions
        self._settings = KafkaSettings(
            bootstrap_servers=address,
            max_message_bytes=MAX_MESSAGE_BYTES,
            connect_timeout_ms=5_000,
        )
        self._open: list[Publisher | Reader] = []
        client = KafkaAdminClient(bootstrap_servers=address)
        configs = {"max.message.bytes": str(MAX_MESSAGE_BYTES)}
        spec = {"num_partitions": partitions, "replication_factor": 1, "configs": configs}
        client.create_topics({topic: spec}, wait_for_metadata=True)
        client.close()

    def publisher(self) -> Publisher:
        publisher = KafkaPublisher(self._settings)
        self._open.append(publisher)
        return publisher

    def reader(self) -> Reader:
        reader = KafkaReader(self._settings)
        self._open.append(reader)
        return reader

    def close(self) -> None:
        for end in self._open:
            end.close()


@pytest.fixture(params=["memory", "kafka"])
def broker(request: pytest.FixtureRequest, topic_prefix: str) -> Iterator[Broker]:
    """Give a broker with one topic of three partitions."""
    made: Memory | Kafka
    if request.param == "memory":
        made = Memory(topic_prefix, 3)
    else:
        made = Kafka(request.getfixturevalue("kafka"), topic_prefix, 3)
    yield made
    made.close()
