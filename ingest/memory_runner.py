"""The plain runner of a stream: one loop that reads, hands over, publishes and remembers.

It works on any broker. Positions and commits live in this object only; who wants them to survive
keeps `committed` and gives it to the next runner.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Final

from detector.errors import BrokerError
from ingest.broker import BrokerRecord, Publisher, Reader, TopicPartition
from ingest.rewind import reachable, rewind
from ingest.stream import Clock, Handler, Outcome

ACK_S: Final = 60.0
"""How long acknowledgements are waited for: a publisher gives up earlier, with a reason."""


class MemoryRunner:
    """Runs a handler over the given partitions of its input topics, in one thread.

    The first of `topics` leads: its last finished record says from when a window is rebuilt.
    Without `idle_s` a partition is told that nothing comes only by `finish`.
    """

    def __init__(
        self,
        handler: Handler,
        *,
        reader: Reader,
        publisher: Publisher,
        topics: Sequence[str],
        idle_s: float | None = None,
        batch_records: int = 64,
        clock: Clock = time.monotonic,
    ) -> None:
        self._handler = handler
        self._reader = reader
        self._publisher = publisher
        self._topics = tuple(topics)
        self._idle_s = idle_s
        self._batch_records = batch_records
        self._clock = clock
        self._heard: dict[int, float] = {}
        self.committed: dict[TopicPartition, int] = {}
        """What is finished and acknowledged: where the next runner may go on."""

    def start(
        self,
        partitions: Iterable[int] | None = None,
        *,
        committed: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Assign partitions, all if none are named, and go back as far as their windows need."""
        self.committed = reachable(self._reader, committed or {})
        if partitions is None:
            partitions = range(self._reader.partitions(self._topics[0]))
        positions: dict[TopicPartition, int] = {}
        for partition in partitions:
            own = {at: done for at, done in self.committed.items() if at.partition == partition}
            positions |= rewind(
                self._reader,
                partition,
                topics=self._topics,
                committed=own,
                warm_from_ms=self._handler.warm_from_ms,
            )
            self._handler.assign(partition, own)
            self._heard[partition] = self._clock()
        self._reader.assign(positions)

    def turn(self, timeout_s: float = 0.0) -> int:
        """Read once and handle what came; return how many records did.

        Raises TooManyDeadLettersError or BrokerError, and has committed nothing of this turn then.
        """
        records = self._reader.poll(timeout_s)
        for partition, own in _by_partition(records).items():
            self._heard[partition] = self._clock()
            for at in range(0, len(own), self._batch_records):
                batch = own[at : at + self._batch_records]
                self._settle(self._handler.take(partition, batch))
        if self._idle_s is not None:
            self._tell_idle(self._idle_s)
        return len(records)

    def catch_up(self) -> int:
        """Handle everything that lies in the broker now; return how many records that were."""
        count = 0
        while taken := self.turn():
            count += taken
        return count

    def finish(self) -> None:
        """Handle what is there and say that no more comes: all that waits is finished."""
        self.catch_up()
        self.settle()

    def settle(self) -> None:
        """Finish all that was taken and waits; what was not read yet is left."""
        for partition in self._heard:
            self._settle(self._handler.idle(partition))

    def stop(self) -> None:
        """Give the partitions back; what is not committed comes again to whoever takes them."""
        for partition in self._heard:
            self._handler.revoke(partition)
        self._heard.clear()
        self._reader.assign({})

    def _tell_idle(self, idle_s: float) -> None:
        now = self._clock()
        for partition, heard in self._heard.items():
            if now - heard >= idle_s:
                self._heard[partition] = now
                self._settle(self._handler.idle(partition))

    def _settle(self, outcome: Outcome) -> None:
        """Publish and wait for every acknowledgement; only then is anything committed."""
        sent = [self._publisher.send(message) for message in outcome.messages]
        if sent:
            self._await(sent)
        for at, offset in outcome.done.items():
            self.committed[at] = max(offset, self.committed.get(at, 0))

    def _await(self, sent: "list[Future[int]]") -> None:
        deadline = time.monotonic() + ACK_S
        try:
            for future in sent:
                future.result(timeout=max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            raise BrokerError(
                f"no acknowledgement within {ACK_S:.0f} s", hint="check that the broker answers"
            ) from None


def _by_partition(records: Iterable[BrokerRecord]) -> dict[int, list[BrokerRecord]]:
    grouped: defaultdict[int, list[BrokerRecord]] = defaultdict(list)
    for record in records:
        grouped[record.partition].append(record)
    return grouped
