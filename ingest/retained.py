"""Reads what a broker retains, up to the end as it is now; without a group, without commits."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from detector.errors import BrokerError
from ingest.broker import BrokerRecord, Reader, TopicPartition
from ingest.stream import Clock

POLL_S: Final = 0.5

SILENT_S: Final = 30.0
"""How long a broker that sends nothing is waited for: three times what a busy one needs."""

_Ranges = dict[TopicPartition, tuple[int, int]]


class Retained:
    """One reading of partitions. `until_s` is when, by `clock`, it ends with what it has."""

    def __init__(
        self, reader: Reader, *, until_s: float = math.inf, clock: Clock = time.monotonic
    ) -> None:
        self._reader = reader
        self._until_s = until_s
        self._clock = clock
        self.is_complete = True
        """False once a reading has ended early: for want of time, or at a silent broker."""

    def messages(
        self,
        places: Iterable[TopicPartition],
        *,
        sent_from_ms: int | None = None,
        on_progress: Callable[[float], object] = lambda _share: None,
    ) -> Iterator[BrokerRecord]:
        """Yield what was sent since then, or all there is, and lies there now.

        `on_progress` is told the share that has been read. Raises BrokerError.
        """
        left = self._ranges(places, sent_from_ms)
        total = sum(end - begin for begin, end in left.values())
        self._reader.assign({at: begin for at, (begin, _) in left.items()})
        heard_s = self._clock()
        while left:
            if self._clock() - heard_s >= SILENT_S:
                self.is_complete = False
                return
            for record in self._reader.poll(POLL_S):
                heard_s = self._clock()
                if heard_s >= self._until_s:
                    self.is_complete = False
                    return
                at = TopicPartition(record.topic, record.partition)
                if at not in left:
                    continue
                _, end = left.pop(at)
                if record.offset < end:
                    yield record
                if record.offset + 1 < end:
                    left[at] = (record.offset + 1, end)
            on_progress(1 - sum(end - begin for begin, end in left.values()) / total)

    def whole(
        self, places: Iterable[TopicPartition], *, sent_from_ms: int | None = None
    ) -> Iterator[BrokerRecord]:
        """Yield the same, and raise BrokerError where it is not read to its end."""
        places = list(places)
        yield from self.messages(places, sent_from_ms=sent_from_ms)
        if not self.is_complete:
            topics = sorted({at.topic for at in places})
            raise BrokerError(
                f"it was not read to its end: nothing came for {SILENT_S:.0f} s",
                where=f"topic {', '.join(topics)}",
                hint="look at the load of the cluster and try again",
            )

    def _ranges(self, places: Iterable[TopicPartition], sent_from_ms: int | None) -> _Ranges:
        """Return the offsets from the first record wanted to the present end, if there is one."""
        ranges = {}
        for at in places:
            begin, end = self._reader.beginning(at), self._reader.end(at)
            if sent_from_ms is not None:
                sent = self._reader.offset_at(at, sent_from_ms)
                begin = end if sent is None else max(sent, begin)
            if begin < end:
                ranges[at] = (begin, end)
        return ranges
