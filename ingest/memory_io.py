"""A broker in memory: the same topics, partitions and offsets as Kafka's, for one process.

Bounded: each partition keeps the newest records up to a number of bytes. A reader whose next record
is gone goes on at the first that is kept, as with Kafka's retention, and sees a gap in the offsets.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Final

from detector.errors import BrokerError
from ingest.broker import BrokerRecord, Message, TopicPartition
from ingest.limits import MAX_MESSAGE_BYTES
from ingest.memory_log import MemoryLog
from ingest.partitioning import message_bytes, partition_of

KEEP_BYTES: Final = 64 * 2**20
"""What a partition keeps: minutes of a machine's traffic, and 512 MiB at 8 partitions."""

RECORD_BYTES: Final = 256
"""What a record costs beside its key, value and headers."""

MAX_POLL_RECORDS: Final = 500
"""Most records of one poll, as in Kafka's clients."""


class MemoryBroker:
    """The topics of one process. Every method may be called from any thread.

    `now_s` gives seconds since 1970 and stamps records as they are sent.
    """

    def __init__(
        self,
        topics: Mapping[str, int],
        *,
        keep_bytes: int = KEEP_BYTES,
        max_message_bytes: int = MAX_MESSAGE_BYTES,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._topics = {
            topic: [MemoryLog(keep_bytes) for _ in range(count)] for topic, count in topics.items()
        }
        self._max_message_bytes = max_message_bytes
        self._now_s = now_s
        self._changed = threading.Condition()
        self._turn = 0

    def publisher(self) -> "MemoryPublisher":
        """Return a publisher; there may be any number."""
        return MemoryPublisher(self)

    def reader(self) -> "MemoryReader":
        """Return a reader; there may be any number, each with its own positions."""
        return MemoryReader(self)

    def append(self, message: Message) -> int:
        """Store a message and return its offset; raises BrokerError if it cannot be stored."""
        size = message_bytes(message)
        if size > self._max_message_bytes:
            raise BrokerError(
                f"a message of {size} bytes is larger than {self._max_message_bytes}",
                where=f"topic {message.topic}",
                hint="raise kafka.max_message_bytes",
            )
        if message.key is None and message.value is None:
            raise BrokerError(
                "a message has neither key nor value",
                where=f"topic {message.topic}",
                hint="give it one of them",
            )
        with self._changed:
            at = self._place(message)
            log = self._log(at)
            stamp_ms = int(self._now_s() * 1000)
            record = BrokerRecord(
                *at, log.end, message.key, message.value, message.headers, stamp_ms
            )
            log.append(record, size + RECORD_BYTES)
            self._changed.notify_all()
        return record.offset

    def partitions(self, topic: str) -> int:
        """Return the number of partitions; raises BrokerError for an unknown topic."""
        if topic not in self._topics:
            raise BrokerError(
                "there is no such topic",
                where=f"topic {topic}",
                hint="a broker in memory has the topics that it was made with",
            )
        return len(self._topics[topic])

    @contextlib.contextmanager
    def locked(self, at: TopicPartition) -> Iterator[MemoryLog]:
        """Give a partition that nobody changes meanwhile; raises BrokerError if there is none."""
        with self._changed:
            yield self._log(at)

    def take(
        self, positions: dict[TopicPartition, int], timeout_s: float
    ) -> Sequence[BrokerRecord]:
        """Return what lies at the positions and move them; wait for it up to the time-out."""
        with self._changed:
            self._changed.wait_for(
                lambda: any(self._log(at).end > offset for at, offset in positions.items()),
                timeout_s,
            )
            found: list[BrokerRecord] = []
            for at in list(positions):
                taken = self._log(at).since(positions[at], MAX_POLL_RECORDS - len(found))
                if taken:
                    found += taken
                    # Last next time, so that a busy partition cannot keep the others waiting.
                    del positions[at]
                    positions[at] = taken[-1].offset + 1
        return found

    def _log(self, at: TopicPartition) -> MemoryLog:
        count = self.partitions(at.topic)
        if not 0 <= at.partition < count:
            raise BrokerError(
                f"there is no partition {at.partition}",
                where=f"topic {at.topic}",
                hint=f"its partitions are 0 to {count - 1}",
            )
        return self._topics[at.topic][at.partition]

    def _place(self, message: Message) -> TopicPartition:
        if message.partition is not None:
            return TopicPartition(message.topic, message.partition)
        count = self.partitions(message.topic)
        if message.key is not None:
            return TopicPartition(message.topic, partition_of(message.key, count))
        self._turn = (self._turn + 1) % count
        return TopicPartition(message.topic, self._turn)


class MemoryPublisher:
    """A Publisher: a message is acknowledged by the time that `send` returns."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._closed = False
        self._refused = 0

    def send(self, message: Message) -> "Future[int]":
        """Store a message; the future is done."""
        future: Future[int] = Future()
        future.set_running_or_notify_cancel()
        try:
            future.set_result(self._append(message))
        except BrokerError as error:
            self._refused += 1
            future.set_exception(error)
        return future

    def flush(self, timeout_s: float) -> None:  # noqa: ARG002 - nothing ever waits here
        """Raise BrokerError if a message was refused since the last flush."""
        refused, self._refused = self._refused, 0
        if refused:
            raise BrokerError(
                f"{refused} messages were not acknowledged",
                where="broker in memory",
                hint="the future of each says why",
            )

    def close(self) -> None:
        """Take no more messages."""
        self._closed = True

    def _append(self, message: Message) -> int:
        if self._closed:
            raise BrokerError(
                "the publisher is closed", where=f"topic {message.topic}", hint="open another"
            )
        return self._broker.append(message)


class MemoryReader:
    """A Reader with positions of its own; for one thread."""

    def __init__(self, broker: MemoryBroker) -> None:
        self._broker = broker
        self._positions: dict[TopicPartition, int] = {}

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic; raises BrokerError if there is none."""
        return self._broker.partitions(topic)

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read exactly these partitions from these offsets."""
        for at in positions:
            with self._broker.locked(at):
                pass  # it exists
        self._positions = dict(positions)

    def poll(self, timeout_s: float) -> Sequence[BrokerRecord]:
        """Return what has come, in order in each partition, at once or within the time-out."""
        return self._broker.take(self._positions, timeout_s)

    def beginning(self, at: TopicPartition) -> int:
        """Return the first offset that is still kept."""
        with self._broker.locked(at) as log:
            return log.first

    def end(self, at: TopicPartition) -> int:
        """Return the offset that the next record will get."""
        with self._broker.locked(at) as log:
            return log.end

    def offset_at(self, at: TopicPartition, timestamp_ms: int) -> int | None:
        """Return the first offset sent at or after an instant, None when there is none yet."""
        with self._broker.locked(at) as log:
            return log.offset_at(timestamp_ms)

    def close(self) -> None:
        """Forget the positions."""
        self._positions = {}
