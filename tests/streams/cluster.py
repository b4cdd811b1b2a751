"""What a test asks of a cluster: topics, records, what was committed, what came out."""

import json
import time
from collections import Counter
from collections.abc import Iterable
from itertools import permutations
from typing import NamedTuple

from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import CoordinatorNotAvailableError, NotCoordinatorError

from ingest.broker import TopicPartition
from ingest.kafka_io import KafkaReader
from ingest.kafka_settings import KafkaSettings
from tests.streams.pairs import WINDOW_MS
from tests.streams.process import until

COORDINATOR_S = 10.0

INPUTS = ("sequences", "runtime", "engine-events")


class Sent(NamedTuple):
    """One record as `PairHandler` reads it; a key with a blank in it cannot be read."""

    partition: int
    event_ms: int
    key: str


class Stream(NamedTuple):
    """The topics of one test on a cluster."""

    settings: KafkaSettings
    prefix: str
    partitions: int

    @property
    def group(self) -> str:
        return f"{self.prefix}-workers"

    @property
    def inputs(self) -> list[str]:
        return [f"{self.prefix}.{name}" for name in INPUTS]

    @property
    def results(self) -> str:
        return f"{self.prefix}.findings"

    def arguments(self, **options: object) -> list[str]:
        """Return the command line of a worker with these options."""
        given = {"bootstrap": self.settings.bootstrap_servers, "prefix": self.prefix, **options}
        return ["tests.streams.worker_main", json.dumps(given)]

    def send(self, records: Iterable[Sent], topic: str = "sequences") -> None:
        """Publish records, sent at their event time, and wait for every acknowledgement."""
        self._send(
            (one.partition, f"{one.event_ms} {one.key}".encode(), one.event_ms, topic)
            for one in records
        )

    def send_raw(self, value: bytes) -> None:
        """Publish any bytes to the first partition of the sequences."""
        self._send([(0, value, now_ms(), "sequences")])

    def _send(self, records: Iterable[tuple[int, bytes, int, str]]) -> None:
        producer = KafkaProducer(bootstrap_servers=self.settings.servers, linger_ms=5)
        try:
            sent = [
                producer.send(f"{self.prefix}.{topic}", value, partition=at, timestamp_ms=when)
                for at, value, when, topic in records
            ]
            for future in sent:
                future.get(60)
        finally:
            producer.close()

    def found(self) -> Counter[str]:
        """Return everything on the topic of results, with how often it is there."""
        return Counter(value.decode() for value in self._values())

    def _values(self) -> Iterable[bytes]:
        reader = KafkaReader(self.settings)
        try:
            at = TopicPartition(self.results, 0)
            end, position = reader.end(at), reader.beginning(at)
            reader.assign({at: position})
            while position < end:
                for record in reader.poll(1.0):
                    position = record.offset + 1
                    yield record.value or b""
        finally:
            reader.close()

    def committed(self) -> dict[TopicPartition, int]:
        """Return the committed offsets of the group."""
        return committed_of(self.settings, self.group)

    def await_committed(self, offsets: dict[int, int], topic: str = "sequences") -> None:
        """Wait until these offsets are committed, by partition."""
        wanted = {TopicPartition(f"{self.prefix}.{topic}", p): o for p, o in offsets.items()}
        until(lambda: self.committed().items() >= wanted.items())


def make_stream(bootstrap: str, prefix: str, partitions: int = 2) -> Stream:
    """Make the topics of a test."""
    settings = KafkaSettings(bootstrap_servers=bootstrap)
    stream = Stream(settings, prefix, partitions)
    admin = KafkaAdminClient(bootstrap_servers=settings.servers)
    try:
        admin.create_topics([NewTopic(name, partitions, 1) for name in stream.inputs])
        admin.create_topics([NewTopic(stream.results, 1, 1)])
    finally:
        admin.close()
    return stream


def committed_of(settings: KafkaSettings, group: str) -> dict[TopicPartition, int]:
    """Return the committed offsets of a group, whose coordinator may still be on its way."""
    admin = KafkaAdminClient(bootstrap_servers=settings.servers)
    deadline = time.monotonic() + COORDINATOR_S
    try:
        while True:
            try:
                found = admin.list_group_offsets({group: None})[group]
                break
            except (CoordinatorNotAvailableError, NotCoordinatorError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
    finally:
        admin.close()
    return {TopicPartition(at.topic, at.partition): one.offset for at, one in found.items()}


def pairs(records: Iterable[Sent]) -> set[str]:
    """Return the pairs among records, found the slow way."""
    return {
        f"{a.partition} {a.key} {a.event_ms} {b.event_ms}"
        for a, b in permutations(set(records), 2)
        if (a.partition, a.key) == (b.partition, b.key) and 0 < b.event_ms - a.event_ms <= WINDOW_MS
    }


def now_ms() -> int:
    return int(time.time() * 1000)
