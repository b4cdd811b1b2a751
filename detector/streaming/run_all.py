"""Composition of `run all`: logs in, findings out, by way of the stream that a cluster uses."""

import socket
import time
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Items
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import chain

from detector.batches import Batches
from detector.config.root import Settings
from detector.errors import TooManyDeadLettersError
from detector.finding import Finding
from detector.heartbeat import RULE as HEARTBEAT
from detector.index.memory import Memory
from detector.index.window import Sequencer
from detector.model import Sequence
from detector.pipeline import Detector
from detector.reading import OnProgress, Reading
from detector.service import (
    STDIN,
    ReplayReport,
    deployment_digester,
    deployment_secret,
    learn,
    replay_hold_ms,
    surest,
)
from detector.sketch.tag_keys import TagKeys
from detector.sketch.token_table import Keys, TokenTable
from detector.streaming.compose import new_handler
from detector.streaming.feed import followed
from detector.streaming.global_tier import GlobalTier
from detector.streaming.handler import StreamHandler
from detector.streaming.local import TICKS_PER_IDLE, EventClock, LocalStream, OnRow
from detector.streaming.local_runner import LocalRunner
from detector.streaming.watched import Watched
from exporters.joined import Joined
from ingest.broker import Message, Reader
from ingest.coverage import Coverage
from ingest.heartbeat import Heartbeats, StreamTime
from ingest.push.received import Received
from ingest.schema_records import RequestRow
from ingest.sealing import KeyRing
from ingest.stream import Clock, Handler
from ingest.topics import topic_names

OnFinding = Callable[[Finding], None]

Stopped = Callable[[], bool]
"""True once the input should be read no further."""

Keep = Callable[[Reader], AbstractContextManager[Callable[[], None]]]
"""Keeps what comes out of the stream; gives what to call when the stream has turned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What to read, as the command line says it. `-` among the paths is followed as it grows."""

    paths: Items[str]
    log_format: str = "auto"
    engine: str | None = None
    kv_pool: str | None = None
    history: Items[str] = ()
    on_progress: OnProgress | None = None
    received: Received | None = None
    """Messages of sidecars, in place of paths."""
    metrics: Joined = field(default_factory=Joined)
    """Gets the metrics of the detection."""

    @property
    def is_live(self) -> bool:
        """True if somebody may still be writing."""
        return self.received is not None or STDIN in self.paths

    def records(self, reading: Reading) -> Iterator[Sequence | RequestRow]:
        """Yield what the files hold."""
        return reading.records(
            self.paths,
            log_format=self.log_format,
            engine=self.engine,
            kv_pool=self.kv_pool,
            on_progress=self.on_progress,
        )

    def followed(
        self, records: Iterator[Sequence | RequestRow], settings: Settings, stopped: Stopped
    ) -> Iterator[Sequence | RequestRow | Message | None]:
        """Yield what comes as it comes, None in between."""
        tick_s = settings.stream.idle_ms / TICKS_PER_IDLE / 1000
        if self.received is not None:
            return self.received.follow(tick_s=tick_s, stopped=stopped)
        return followed(records, tick_s=tick_s, stopped=stopped)


def run(
    source: Input,
    settings: Settings,
    *,
    on_finding: OnFinding | None = None,
    on_row: OnRow | None = None,
    stopped: Stopped | None = None,
    keep: Keep | None = None,
) -> ReplayReport:
    """Run logs through the stream; `on_finding` gets each finding, and its surer versions, at once.

    `on_row` gets the row of every request, also of those without token ids or an answer. `keep`
    reads the topics of results beside.

    Finished logs are put in order as a replay does, so they give what a replay gives. Live ones go
    as they come. Ends early, in order, once `stopped` says so.
    Raises InputError, UsageError, KeyFileError. `cpu_seconds` leaves out the learning.
    """
    secret = deployment_secret(settings)
    keys, ring = secret.keys(), KeyRing.of(secret)
    table = TokenTable(keys.hash_key, key_id=keys.key_id)
    reading = Reading(settings, table)
    records = source.records(reading)
    memory = Memory(settings.detection.commonness)
    past, skipped = Reading(settings, table), 0
    if source.history:
        first = next(records, None)
        records = records if first is None else chain((first,), records)
        before_ms = None if first is None else first.started_at_ms
        skipped = _learn(past, source, settings, memory, before_ms=before_ms)
    began = time.process_time()
    tier = _tier(settings, ring, keys) if settings.stream.global_tier else None
    handler, stream = _local(
        settings, ring, table, memory, source.metrics, live=source.is_live, tier=tier, on_row=on_row
    )
    sequencer = Sequencer(hold_ms=replay_hold_ms(settings.detection.window))
    feed = (
        _live(
            stream,
            source.followed(records, settings, stopped or _never),
            _Beats(settings, key_id=keys.key_id, is_off=source.received is not None),
        )
        if source.is_live
        else _finished(stream, records, sequencer, stopped or _never)
    )
    with _kept(stream, keep):
        found = list(_told(feed, on_finding))
    return _report(
        handler, None if source.is_live else sequencer, reading, settings, surest(found),
        cpu_seconds=time.process_time() - began,
        history=past.coverage if source.history else None,
        history_skipped=skipped,
    )  # fmt: skip


def _told(feed: Iterator[Finding], on_finding: OnFinding | None) -> Iterator[Finding]:
    """Yield what is found as it is told; a heartbeat is nobody's business."""
    for finding in feed:
        if finding.rule == HEARTBEAT:
            continue
        if on_finding is not None:
            on_finding(finding)
        yield finding


@contextmanager
def _kept(stream: LocalStream, keep: Keep | None) -> Iterator[None]:
    """Have the results of a stream kept for the time of a block."""
    if keep is None:
        yield
        return
    with keep(stream.reader()) as after_turn:
        stream.after_turn = after_turn
        yield


def _never() -> bool:
    return False


def _tier(settings: Settings, ring: KeyRing, keys: Keys) -> GlobalTier:
    return GlobalTier(
        settings, TagKeys(keys.tag_key), ring=lambda: ring, ranges=settings.kafka.partitions
    )


class WallClock(EventClock):
    """The machine's time: what comes live is sent when it comes, whatever date it bears.

    By its own date nothing would ever be ahead of time, and one record of the future would make
    the memory of a day forget all that came before.
    """

    def __call__(self) -> float:
        """Return the time in seconds."""
        return time.time()


def _local(
    settings: Settings,
    ring: KeyRing,
    table: TokenTable,
    memory: Memory,
    metrics: Joined,
    *,
    live: bool,
    tier: GlobalTier | None,
    on_row: OnRow | None,
) -> tuple[StreamHandler, LocalStream]:
    """Return the handler and the stream around it. Only in a live one the machine's time passes."""
    events = WallClock() if live else EventClock()
    clock: Clock = time.monotonic if live else events
    handler = new_handler(
        settings,
        ring=lambda: ring,
        table=table,
        memory=memory,
        sketches=None if tier is None else tier.sketches,
        digester=deployment_digester(settings),
        clock=clock,
    )

    def watch(outer: Handler, reader: Reader) -> Handler:
        watched = Watched(settings, handler, outer=outer, now_s=events)
        watched.follow(LocalRunner(reader))
        watched.show(metrics)
        return watched.handler

    return handler, LocalStream(
        handler,
        topics=topic_names(settings.kafka.topic_prefix),
        ring=ring,
        partitions=settings.kafka.partitions,
        settings=settings.stream,
        packing=settings.packing,
        events=events,
        clock=clock,
        on_row=on_row,
        tier=tier,
        watch=watch,
    )


def _learn(
    past: Reading, source: Input, settings: Settings, memory: Memory, *, before_ms: int | None
) -> int:
    """Fill the memory from the history; return how many of its sequences were no history."""
    return learn(
        Detector(settings.detection, memory=memory),
        past.sequences(source.history, log_format=source.log_format),
        window=settings.detection.window,
        batches=Batches(settings.detection),
        before_ms=before_ms,
    )


class _Beats:
    """The heartbeats of a log that is followed, if there are to be any.

    A process that listens has a sidecar inside, which sends them as the others do.
    """

    def __init__(self, settings: Settings, *, key_id: str, is_off: bool) -> None:
        self._time = StreamTime()
        every_ms = None if is_off else settings.heartbeat.every_ms
        self._beats = every_ms and Heartbeats(
            socket.gethostname(),
            every_ms=every_ms,
            time=self._time,
            key_id=lambda: key_id,
            wall_ms=lambda: time.time_ns() // 1_000_000,
        )

    def after(self, record: Sequence | RequestRow | Message | None) -> list[Sequence]:
        """Return what is due once a record has come, or none has for a moment."""
        now_s = time.monotonic()
        if isinstance(record, Sequence):
            self._time.hear(record.ended_at_ms, now_s)
        return self._beats.due(now_s) if self._beats else []


def _live(
    stream: LocalStream,
    records: Iterator[Sequence | RequestRow | Message | None],
    beats: _Beats,
) -> Iterator[Finding]:
    """Send what comes when it comes, and let time pass in between.

    Where too much cannot be read, what came before it is finished first.
    """
    try:
        for record in records:
            for beat in beats.after(record):
                yield from stream.send(beat)
            if record is None:
                yield from stream.tick()
            elif isinstance(record, RequestRow):
                yield from stream.send_row(record)
            elif isinstance(record, Message):
                yield from stream.take(record)
            else:
                yield from stream.send(record)
    except TooManyDeadLettersError:
        yield from stream.settle()
        raise
    yield from stream.finish()


def _finished(
    stream: LocalStream,
    records: Iterator[Sequence | RequestRow],
    sequencer: Sequencer,
    stopped: Stopped,
) -> Iterator[Finding]:
    """Put all in order first, as a replay does, and send it as it once happened."""
    for record in records:
        if stopped():
            break
        if isinstance(record, RequestRow):
            yield from stream.send_row(record)
            continue
        for ready in sequencer.push(record):
            yield from stream.send(ready)
    for ready in sequencer.drain():
        yield from stream.send(ready)
    yield from stream.finish()


def _report(
    handler: StreamHandler,
    sender: Sequencer | None,
    reading: Reading,
    settings: Settings,
    findings: list[Finding],
    *,
    cpu_seconds: float,
    history: Coverage | None,
    history_skipped: int,
) -> ReplayReport:
    totals = handler.totals()
    since_ms = handler.memory.seen.since_ms
    reach_ms = 0 if since_ms is None else handler.memory.now_ms - since_ms
    return ReplayReport(
        findings=sorted(findings, key=lambda one: (one.observed_at_ms, one.id)),
        coverage=reading.coverage,
        requests=reading.requests,
        responses=totals.stats.responses,
        tokens=totals.stats.tokens,
        cpu_seconds=cpu_seconds,
        learning=reach_ms < settings.detection.commonness.learning_ms,
        late=totals.late if sender is None else sender.late,
        clock_jumps=totals.clock_jumps if sender is None else sender.clock_jumps,
        evicted_sequences=totals.evicted,
        explained=dict(totals.explained),
        history=history,
        history_skipped=history_skipped,
    )
