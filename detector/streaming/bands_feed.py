"""Reads what workers tell each other about responses, in the ranges that this one owns."""

from detector.streaming.bands_exchange import BandsExchange
from ingest.broker import Reader, TopicPartition


class BandsFeed:
    """Gives an exchange its records. One thread, the one that runs the detectors."""

    def __init__(self, reader: Reader, exchange: BandsExchange) -> None:
        self._reader = reader
        self._exchange = exchange
        self._next: dict[TopicPartition, int] = {}

    def own(self, partition: int) -> None:
        """Own a range from now on: its records come from the first one kept."""
        at = TopicPartition(self._exchange.topic, partition)
        begin = self._reader.beginning(at)
        self._exchange.own(partition, begin=begin, end=self._reader.end(at))
        self._next[at] = begin
        self._reader.assign(self._next)

    def disown(self, partition: int) -> None:
        """Own a range no longer."""
        self._exchange.disown(partition)
        at = TopicPartition(self._exchange.topic, partition)
        if self._next.pop(at, None) is not None:
            self._reader.assign(self._next)

    def poll(self, timeout_s: float = 0.0) -> int:
        """Take what has come; return how many records that were."""
        taken = 0
        for record in self._reader.poll(timeout_s):
            at = TopicPartition(record.topic, record.partition)
            if record.offset >= self._next.get(at, record.offset + 1):
                self._exchange.take(record)
                self._next[at] = record.offset + 1
                taken += 1
        return taken

    def close(self) -> None:
        """Let go of the connections."""
        self._reader.close()
