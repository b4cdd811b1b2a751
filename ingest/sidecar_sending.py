"""From records to messages that are safe: packs, sends, sends again, and tells what is done."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from detector.errors import BrokerError
from detector.heartbeat import is_reserved
from ingest.broker import Message
from ingest.heartbeat import StreamTime
from ingest.outlet import Outlet
from ingest.packing import Packer
from ingest.packing_forms import ClearForm, SealedForm
from ingest.packing_settings import PackingSettings
from ingest.partitioning import message_bytes
from ingest.schema_records import EngineEvent, RequestRow, RuntimeSample, SequenceRecord
from ingest.sealing import KeyRing
from ingest.topics import TopicNames

_log = logging.getLogger(__name__)

RETRY_S: Final = 1.0
"""How long to wait before a message that was refused is sent again."""

MAX_UNSAFE_BYTES: Final = 16 * 1024 * 1024
"""Sent and not safe yet, before no more is read: 60 full messages, and below the 64 MiB that a
publisher holds before it makes senders wait."""

SidecarRecord = SequenceRecord | EngineEvent | RequestRow | RuntimeSample


@dataclass(slots=True)
class _Underway:
    message: Message
    size: int
    future: "Future[int] | None"
    """None while it waits to be sent again."""


class Sending:
    """Sends records of every kind; numbers messages, so that one can ask what is safe.

    Times are seconds of a clock that never goes back. For one thread.
    """

    def __init__(
        self,
        outlet: Outlet,
        *,
        topics: TopicNames,
        ring: Callable[[], KeyRing],
        packing: PackingSettings,
    ) -> None:
        self._outlet = outlet
        self._sequences = Packer(topics.sequences, SealedForm(ring), packing)
        self._events = Packer(topics.engine_events, ClearForm(EngineEvent), packing)
        self._rows = Packer(topics.requests, ClearForm(RequestRow), packing)
        self._samples = Packer(topics.runtime, ClearForm(RuntimeSample), packing)
        self._packers = (self._sequences, self._events, self._rows, self._samples)
        self._underway: dict[int, _Underway] = {}
        self._next = 0
        self._retry_s = 0.0
        self.time = StreamTime()
        """What time it is in what is sent."""
        self.records: Counter[str] = Counter()
        self.tokens = 0
        self.failed_sends = 0
        self.problem: BrokerError | None = None
        """Why the last message that was refused was; None since all is safe."""
        self.unsafe_bytes = 0

    @property
    def is_full(self) -> bool:
        """True while so much is not safe yet that nothing more should be read."""
        return self.unsafe_bytes >= MAX_UNSAFE_BYTES

    @property
    def refused(self) -> Counter[str]:
        """Records that could not be packed, by reason."""
        return sum((packer.refused for packer in self._packers), Counter())

    def add(self, records: Iterable[SidecarRecord], now_s: float) -> None:
        """Pack records, and send what is full."""
        for record in records:
            match record:
                case SequenceRecord():
                    self._count(record, now_s)
                    self._send(self._sequences.add(record, now_s))
                case EngineEvent():
                    self.records["event"] += 1
                    self._send(self._events.add(record, now_s))
                case RequestRow():
                    self.records["row"] += 1
                    self._send(self._rows.add(record, now_s))
                case RuntimeSample():
                    self.records["sample"] += 1
                    self._send(self._samples.add(record, now_s))

    def due(self, now_s: float) -> None:
        """Send what has waited long enough, and what was refused a while ago; hear what is safe."""
        for packer in self._packers:
            self._send(packer.due(now_s))
        self._settle(now_s)

    def drain(self) -> int:
        """Send everything that is held; return the number that `is_safe` tells about it."""
        for packer in self._packers:
            self._send(packer.drain())
        return self._next

    def is_safe(self, number: int) -> bool:
        """Tell whether every message before a number is safe."""
        return all(one >= number for one in self._underway)

    def _count(self, record: SequenceRecord, now_s: float) -> None:
        if is_reserved(record.tenant):
            self.records["heartbeat"] += 1
            return
        self.records["sequence"] += 1
        self.tokens += record.token_count
        self.time.hear(record.ended_at_ms, now_s)

    def _send(self, messages: Sequence[Message]) -> None:
        for message in messages:
            size = message_bytes(message)
            self._underway[self._next] = _Underway(message, size, self._outlet.send(message))
            self._next += 1
            self.unsafe_bytes += size

    def _settle(self, now_s: float) -> None:
        for number, one in list(self._underway.items()):
            if one.future is None:
                if now_s >= self._retry_s:
                    one.future = self._outlet.send(one.message)
            elif one.future.done():
                error = one.future.exception()
                if error is None:
                    del self._underway[number]
                    self.unsafe_bytes -= one.size
                else:
                    self._refused(one, error, now_s)
        if not self._underway:
            self.problem = None

    def _refused(self, one: _Underway, error: BaseException, now_s: float) -> None:
        if not isinstance(error, BrokerError):
            raise error
        one.future = None
        self.failed_sends += 1
        if self.problem is None:
            _log.warning("messages are refused and will be sent again: %s", error)
        self.problem = error
        self._retry_s = now_s + RETRY_S
