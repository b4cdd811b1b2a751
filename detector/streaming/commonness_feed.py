"""Reads what workers tell each other: all of `commonness`, and the ranges that this one owns."""

import time

from detector.streaming.exchange import Exchange
from ingest.broker import BrokerRecord, Reader, TopicPartition
from ingest.stream import Clock

POLL_S = 0.1
"""How long one poll waits while reading up: the end is looked for in between."""


class CommonnessFeed:
    """Gives an exchange its records. One thread, the one that runs the detectors."""

    def __init__(
        self, reader: Reader, exchange: Exchange, *, clock: Clock = time.monotonic
    ) -> None:
        self._reader = reader
        self._exchange = exchange
        self._clock = clock
        self._next: dict[TopicPartition, int] = {}

    def start(self, *, timeout_s: float) -> bool:
        """Read `commonness` from its beginning to its present end; True when that was in time.

        Raises BrokerError when there is no such topic. Until then what is common elsewhere is not
        known here; going on without is safe, findings are only more than they should be.
        """
        topic = self._exchange.commonness_topic
        for partition in range(self._reader.partitions(topic)):
            at = TopicPartition(topic, partition)
            self._next[at] = self._reader.beginning(at)
        self._reader.assign(self._next)
        return self.read_up(timeout_s=timeout_s)

    def own(self, partition: int) -> None:
        """Own a range from now on: its records come from the first one kept."""
        at = TopicPartition(self._exchange.shingles_topic, partition)
        self._exchange.own(partition, end=self._reader.end(at))
        self._next[at] = self._reader.beginning(at)
        self._reader.assign(self._next)

    def disown(self, partition: int) -> None:
        """Own a range no longer."""
        self._exchange.disown(partition)
        at = TopicPartition(self._exchange.shingles_topic, partition)
        if self._next.pop(at, None) is not None:
            self._reader.assign(self._next)

    def poll(self, timeout_s: float = 0.0) -> int:
        """Take what has come; return how many records that were."""
        records = self._reader.poll(timeout_s)
        for record in records:
            self._take(record)
        return len(records)

    def read_up(self, *, timeout_s: float) -> bool:
        """Read everything that has been told by now; True when that was in time."""
        ends = {at: self._reader.end(at) for at in self._next}
        until = self._clock() + timeout_s
        while any(self._next.get(at, end) < end for at, end in ends.items()):
            if self._clock() >= until:
                return False
            self.poll(POLL_S)
        return True

    def behind(self) -> int:
        """Return how many records have been told and not been taken; asks the broker."""
        return sum(max(self._reader.end(at) - offset, 0) for at, offset in self._next.items())

    def close(self) -> None:
        """Let go of the connections."""
        self._reader.close()

    def _take(self, record: BrokerRecord) -> None:
        at = TopicPartition(record.topic, record.partition)
        if record.offset >= self._next.get(at, record.offset + 1):
            self._exchange.take(record)
            self._next[at] = record.offset + 1
