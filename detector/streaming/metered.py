"""A handler that measures its batches and keeps its monitor up to date; all else it passes on."""

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from detector.streaming.monitor import Monitor
from ingest.broker import BrokerRecord, TopicPartition
from ingest.stream import Clock, Handler, Outcome


class Observer(Protocol):
    """Takes one measurement; a histogram of Prometheus is one."""

    def observe(self, amount: float) -> None:
        """Record one measurement, in seconds."""
        ...


class MeteredHandler:
    """Passes every call to `handler`; a batch is one call of `take`, also one that raises.

    `topics` are the inputs of a partition. What the handler calls done counts as done here, a
    moment before it is committed.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        topics: Sequence[str],
        monitor: Monitor,
        batch_seconds: Observer,
        clock: Clock = time.perf_counter,
    ) -> None:
        self._handler = handler
        self._topics = tuple(topics)
        self._monitor = monitor
        self._lag = monitor.lag
        self._batch_seconds = batch_seconds
        self._clock = clock

    def warm_from_ms(self, newest: BrokerRecord) -> int:
        """See `Handler`."""
        return self._handler.warm_from_ms(newest)

    def assign(self, partition: int, committed: Mapping[TopicPartition, int]) -> None:
        """See `Handler`."""
        self._handler.assign(partition, committed)
        self._lag.assign((TopicPartition(topic, partition) for topic in self._topics), committed)
        self._monitor.refresh()

    def revoke(self, partition: int) -> None:
        """See `Handler`."""
        self._lag.revoke(partition)
        self._handler.revoke(partition)
        self._monitor.refresh()

    def take(self, partition: int, records: Sequence[BrokerRecord]) -> Outcome:
        """See `Handler`; the time until it returns or raises is one measurement."""
        self._lag.take(records)
        began = self._clock()
        try:
            outcome = self._handler.take(partition, records)
        finally:
            self._batch_seconds.observe(self._clock() - began)
        self._lag.done(outcome.done)
        self._monitor.refresh_if_due()
        return outcome

    def idle(self, partition: int) -> Outcome:
        """See `Handler`."""
        self._lag.idle(partition)
        outcome = self._handler.idle(partition)
        self._lag.done(outcome.done)
        self._monitor.refresh()
        return outcome
