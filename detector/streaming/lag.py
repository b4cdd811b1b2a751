"""How far a worker is behind in each input: records not finished with, and since when they wait."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock

from exporters.worker_state import InputState
from ingest.broker import BrokerRecord, TopicPartition

EndOf = Callable[[TopicPartition], int | None]
"""Gives the offset that the next record of a partition will get, None while it is not known."""


class _Input:
    """One partition of one topic since it was assigned."""

    def __init__(self, done: int) -> None:
        self.done = done
        self.taken = done
        self.waiting: deque[tuple[int, int]] = deque()
        """Offset and time stamp (ms) of records that were taken and are not done."""
        self.as_of_ms: int | None = None
        """The next record to take has not been there since before this instant."""


class LagTracker:
    """Follows what is taken and done, and asks for the ends when somebody wants to know.

    When a record that was not read yet came is not known, but it came after the record before it
    and after the last moment at which nothing was left to read. Any thread may call.
    """

    def __init__(self, end_of: EndOf, *, now_s: Callable[[], float] = time.time) -> None:
        self._end_of = end_of
        self._now_s = now_s
        self._inputs: dict[TopicPartition, _Input] = {}
        self._lock = Lock()

    def assign(
        self, inputs: Iterable[TopicPartition], committed: Mapping[TopicPartition, int]
    ) -> None:
        """Follow inputs from now on; one that was never committed begins at its first record."""
        with self._lock:
            self._inputs.update((at, _Input(committed.get(at, 0))) for at in inputs)

    def revoke(self, partition: int) -> None:
        """Forget the inputs of a partition."""
        with self._lock:
            for at in [at for at in self._inputs if at.partition == partition]:
                del self._inputs[at]

    def take(self, records: Sequence[BrokerRecord]) -> None:
        """Note records that were read, in offset order for each input."""
        with self._lock:
            for record in records:
                one = self._inputs.get(TopicPartition(record.topic, record.partition))
                if one is not None and record.offset >= one.taken:
                    one.taken = record.offset + 1
                    one.waiting.append((record.offset, record.timestamp_ms))
                    one.as_of_ms = record.timestamp_ms

    def done(self, done: Mapping[TopicPartition, int]) -> None:
        """Note the offsets below which records are finished with."""
        with self._lock:
            for at, offset in done.items():
                one = self._inputs.get(at)
                if one is None:
                    continue
                one.done = max(one.done, offset)
                while one.waiting and one.waiting[0][0] < one.done:
                    one.waiting.popleft()

    def idle(self, partition: int) -> None:
        """Note that nothing was left to read of a partition."""
        now_ms = self._now_ms()
        with self._lock:
            for at, one in self._inputs.items():
                if at.partition == partition:
                    one.as_of_ms = now_ms

    def states(self) -> list[InputState]:
        """Return the lag of every input now."""
        now_ms = self._now_ms()
        with self._lock:
            inputs = sorted(self._inputs.items())
        ends = {at: self._end_of(at) for at, _ in inputs}  # may ask the broker: without the lock
        with self._lock:
            return [_state(at, one, ends[at], now_ms) for at, one in inputs]

    def _now_ms(self) -> int:
        return int(self._now_s() * 1000)


def _state(at: TopicPartition, one: _Input, end: int | None, now_ms: int) -> InputState:
    if end is None:
        return InputState(topic=at.topic, partition=at.partition)
    behind = max(end - one.done, 0)
    if end <= one.taken:
        one.as_of_ms = now_ms
    since_ms = one.waiting[0][1] if one.waiting else one.as_of_ms
    waited = None if since_ms is None else max(now_ms - since_ms, 0) / 1000
    return InputState(
        topic=at.topic,
        partition=at.partition,
        lag_records=behind,
        lag_seconds=waited if behind else 0.0,
    )
