"""What a message broker is to us: publish with an acknowledgement, read partitions by offset.

Two brokers keep this contract: Kafka and the one in memory. One test suite runs on both.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple, Protocol

Headers = tuple[tuple[str, bytes], ...]


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int


class BrokerRecord(NamedTuple):
    """One record as it lies in a partition. `timestamp_ms` is when its producer sent it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int

    def __repr__(self) -> str:
        """Place and size only: what others have sent may hold anything."""
        size = len(self.value or b"")
        return f"BrokerRecord({self.topic}/{self.partition} at {self.offset}, {size} bytes)"


class Message(NamedTuple):
    """One record to publish. The key decides the partition, unless `partition` does."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None

    def __repr__(self) -> str:
        """Topic and size only, as of a record."""
        return f"Message({self.topic}, {len(self.value or b'')} bytes)"


class Publisher(Protocol):
    """Sends messages in order for each key; bounded in what it holds unacknowledged."""

    def send(self, message: Message) -> "Future[int]":
        """Queue a message; the future gives its offset once the broker has acknowledged it.

        Blocks while the bound on unacknowledged bytes is reached. The future raises BrokerError.
        """
        ...

    def flush(self, timeout_s: float) -> None:
        """Wait until everything sent is acknowledged; raises BrokerError if it is not in time."""
        ...

    def close(self) -> None:
        """Flush what can be flushed within a few seconds and let go of the connections."""
        ...


class Reader(Protocol):
    """Reads partitions that it assigns itself: no group, no commits."""

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic; raises BrokerError if there is none."""
        ...

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read exactly these partitions from these offsets."""
        ...

    def poll(self, timeout_s: float) -> Sequence[BrokerRecord]:
        """Return what has come, in order in each partition, at once or within the time-out."""
        ...

    def beginning(self, at: TopicPartition) -> int:
        """Return the first offset that is still kept."""
        ...

    def end(self, at: TopicPartition) -> int:
        """Return the offset that the next record will get."""
        ...

    def offset_at(self, at: TopicPartition, timestamp_ms: int) -> int | None:
        """Return the first offset sent at or after an instant, None when there is none yet."""
        ...

    def close(self) -> None:
        """Let go of the connections."""
        ...
