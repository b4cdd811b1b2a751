"""The whole stream in one process: sender, broker in memory, runner, handler and reader."""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from detector.finding import Finding
from detector.model import Sequence
from detector.streaming.global_tier import GlobalTier
from detector.streaming.handler import StreamHandler
from ingest.broker import Message, Reader, TopicPartition
from ingest.memory_io import MemoryBroker
from ingest.memory_runner import MemoryRunner
from ingest.packing import Packer
from ingest.packing_forms import ClearForm, SealedForm
from ingest.packing_settings import PackingSettings
from ingest.record_batches import unpack_clear
from ingest.record_headers import event_times
from ingest.schema_records import RequestRow
from ingest.schema_sequence import to_record
from ingest.sealing import KeyRing
from ingest.stream import Clock, Handler
from ingest.stream_settings import StreamSettings
from ingest.topics import TopicNames

KEEP_BYTES = 16 * 1024 * 1024
"""What a partition of the broker keeps. Everything is read at once, so more would serve nobody."""

TICKS_PER_IDLE = 4
"""A silence is noticed after at most a fourth more than stream.idle_ms."""

_FINISHING_TURNS = 2
"""What the last records tell other partitions is judged in the turn after."""


OnRow = Callable[[RequestRow], None]

Watch = Callable[[Handler, Reader], Handler]
"""Wraps what handles a stream; the reader is for what else it wants to know of the broker."""


class EventClock:
    """A clock that shows the newest event time so far, in seconds: a log says when it is."""

    def __init__(self) -> None:
        self._now_ms: int | None = None

    def __call__(self) -> float:
        """Return the time; it never goes back."""
        return (self._now_ms or 0) / 1000

    def advance(self, event_ms: int) -> None:
        """Hear of an event."""
        self._now_ms = event_ms if self._now_ms is None else max(self._now_ms, event_ms)


class LocalStream:
    """Sends sequences through a broker in memory and returns the findings that come out.

    A message counts as sent at the time of `events`. `clock` decides how long senders linger and
    when a partition has heard nothing for long; the handler must have the same. With a `tier`
    responses of all pools are compared; the handler must make its sketches.
    """

    def __init__(
        self,
        handler: StreamHandler,
        *,
        topics: TopicNames,
        ring: KeyRing,
        partitions: int,
        settings: StreamSettings,
        packing: PackingSettings,
        events: EventClock,
        clock: Clock,
        tier: GlobalTier | None = None,
        on_row: OnRow | None = None,
        watch: Watch | None = None,
    ) -> None:
        """`on_row` gets the row of every request as it comes out; `watch` may wrap what handles."""
        self.after_turn: Callable[[], None] = _nothing
        """Called when the stream has turned, and when it has finished."""
        self._handler = handler
        self._on_row = on_row
        self._events = events
        self._clock = clock
        broker = MemoryBroker(
            dict.fromkeys(topics, partitions), keep_bytes=KEEP_BYTES, now_s=events
        )
        self._broker = broker
        self._publisher = broker.publisher()
        self._packer = Packer(topics.sequences, SealedForm(lambda: ring), packing)
        self._row_packer = Packer(topics.requests, ClearForm(RequestRow), packing)
        outer: Handler = handler
        if tier is not None:
            outer = tier.around(handler, handler, broker.reader())
        self._runner = MemoryRunner(
            outer if watch is None else watch(outer, broker.reader()),
            reader=broker.reader(),
            publisher=self._publisher,
            topics=topics.inputs,
            idle_s=settings.idle_ms / 1000,
            batch_records=settings.batch_records,
            clock=clock,
        )
        self._runner.start()
        self._tick_s = settings.idle_ms / TICKS_PER_IDLE / 1000
        self._next_turn_s = clock()
        self._results = broker.reader()
        self._findings = topics.findings
        self._inputs = topics.inputs
        read = [topics.findings] if on_row is None else [topics.findings, topics.requests]
        self._results.assign(
            {TopicPartition(topic, n): 0 for topic in read for n in range(partitions)}
        )
        self._decoder = msgspec.json.Decoder(Finding)

    def reader(self) -> Reader:
        """Return a reader of what goes through the stream."""
        return self._broker.reader()

    def send(self, sequence: Sequence) -> Iterator[Finding]:
        """Take a sequence, and send what is due."""
        self._events.advance(sequence.ended_at_ms)
        now_s = self._clock()
        yield from self._turn(
            [*self._due(now_s), *self._packer.add(to_record(sequence), now_s)], now_s
        )

    def send_row(self, row: RequestRow) -> Iterator[Finding]:
        """Take the row of a request without token ids, and send what is due."""
        now_s = self._clock()
        yield from self._turn([*self._due(now_s), *self._row_packer.add(row, now_s)], now_s)

    def take(self, message: Message) -> Iterator[Finding]:
        """Take a message that another process has packed, and send what is due."""
        times = event_times(message.headers)
        if times is not None and message.topic == self._inputs[0]:
            self._events.advance(times.newest)
        now_s = self._clock()
        yield from self._turn([*self._due(now_s), message], now_s)

    def tick(self) -> Iterator[Finding]:
        """Send what is due though nothing came."""
        now_s = self._clock()
        yield from self._turn(self._due(now_s), now_s)

    def finish(self) -> Iterator[Finding]:
        """Send what is left and finish everything that waits for its turn or for an answer."""
        self._publish([*self._packer.drain(), *self._row_packer.drain()])
        for _ in range(_FINISHING_TURNS):
            self._runner.finish()
        self._publish(self._handler.end())
        self.after_turn()
        yield from self._found()

    def settle(self) -> Iterator[Finding]:
        """Finish what was taken and read nothing more: what came last could not be handled."""
        self._runner.settle()
        yield from self._found()

    def _due(self, now_s: float) -> list[Message]:
        return [*self._packer.due(now_s), *self._row_packer.due(now_s)]

    def _turn(self, messages: list[Message], now_s: float) -> Iterator[Finding]:
        if not messages and now_s < self._next_turn_s:
            return
        self._publish(messages)
        self._runner.turn()
        self.after_turn()
        self._next_turn_s = now_s + self._tick_s
        yield from self._found()

    def _publish(self, messages: Iterable[Message]) -> None:
        for message in messages:
            self._publisher.send(message).result()

    def _found(self) -> Iterator[Finding]:
        while records := self._results.poll(0.0):
            for record in records:
                if record.topic == self._findings:
                    yield self._decoder.decode(record.value or b"")
                elif self._on_row is not None:
                    for row in unpack_clear(RequestRow, record.value or b"").records:
                        self._on_row(row)


def _nothing() -> None:
    pass
