"""Reading in tests: until as many records are there as were sent."""

import time
from collections.abc import Sequence

from ingest.broker import BrokerRecord, Reader, TopicPartition
from tests.contract.conftest import Broker

TIMEOUT_S = 15.0


def read_all(broker: Broker, count: int) -> Sequence[BrokerRecord]:
    """Return exactly `count` records of the topic, read from the beginning."""
    reader = broker.reader()
    partitions = range(reader.partitions(broker.topic))
    reader.assign({TopicPartition(broker.topic, partition): 0 for partition in partitions})
    return collect(reader, count)


def collect(reader: Reader, count: int) -> Sequence[BrokerRecord]:
    """Poll until `count` records have come, and fail if there are others."""
    found: list[BrokerRecord] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(found) < count and time.monotonic() < deadline:
        found += reader.poll(0.5)
    found += reader.poll(0.05)
    assert len(found) == count
    return found
