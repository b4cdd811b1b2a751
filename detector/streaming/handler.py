"""The detection of one process as a stream runner sees it: records in, messages and offsets out."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Final

from detector.advisories.load import advisories, features
from detector.finding import Finding
from detector.heartbeat import is_reserved
from detector.index.memory import Memory
from detector.index.window import Sequencer
from detector.match.allow_list import AllowList
from detector.match.digests import Digester
from detector.match.response_sketches import ResponseSketches
from detector.pipeline import Detector
from detector.rules.advisory import KnownAdvisories
from detector.runtime.settings import RuntimeSettings
from detector.settings import DetectionSettings
from detector.streaming.blindness import Blindness
from detector.streaming.inputs import ClearInput
from detector.streaming.intake import Intake, RingNow
from detector.streaming.outgoing import Outgoing
from detector.streaming.partition import Judged, Partition
from detector.streaming.runtime_watch import RuntimeWatch
from detector.streaming.tally import Tally, Totals
from ingest.broker import BrokerRecord, Message, TopicPartition
from ingest.dead_letter_limit import DeadLetterSettings
from ingest.envelope import Unpacked
from ingest.opening import open_records
from ingest.packing_settings import PackingSettings
from ingest.record_headers import event_times
from ingest.request_rows import RequestRows, rejection_row
from ingest.schema_records import EngineEvent, Record, RuntimeSample, SequenceRecord
from ingest.stream import Clock, Outcome
from ingest.stream_settings import StreamSettings
from ingest.topics import TopicNames

HEARTBEAT_BYTES: Final = 1 << 20
"""Memory for heartbeats, of which a few come in a minute."""


@dataclass(slots=True)
class Held:
    """One assigned partition: the sequences of its pools, and its inputs without tokens."""

    window: Partition
    watch: RuntimeWatch
    blindness: Blindness
    runtime: ClearInput
    engine_events: ClearInput
    assigned_at: float


class StreamHandler:
    """See `ingest.stream.Handler`. `partitions` is how many the topics have in all.

    Each assigned partition has a detector with its part of the index's byte budget; the memory of
    what is common is one for all, outlives them, and may be given. `sketches` are what the
    detectors make for others. `now_ms` is the wall clock: it dates dead letters, no more.
    """

    def __init__(
        self,
        settings: DetectionSettings,
        *,
        topics: TopicNames,
        ring: RingNow,
        partitions: int,
        stream: StreamSettings | None = None,
        dead_letters: DeadLetterSettings | None = None,
        packing: PackingSettings | None = None,
        memory: Memory | None = None,
        sketches: ResponseSketches | None = None,
        allowed: AllowList | None = None,
        digester: Digester | None = None,
        engines: RuntimeSettings | None = None,
        clock: Clock = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._settings = settings
        self._topics = topics
        self.stream = StreamSettings() if stream is None else stream
        self._index_bytes = max(settings.index.memory_bytes // partitions, 1)
        self._allowed = allowed
        self._digester = digester
        self._engines = RuntimeSettings() if engines is None else engines
        self._sketches = sketches
        self._clock = clock
        self.memory = Memory(settings.commonness) if memory is None else memory
        self._heartbeat_memory: Memory | None = None
        self.tally = Tally()
        self._lost = Totals()
        self.held: dict[int, Held] = {}
        self.intake = Intake(ring, self.stream.ahead_ms)
        self._outgoing = Outgoing(
            topics,
            self.tally,
            limit=dead_letters or DeadLetterSettings(),
            packing=packing or PackingSettings(),
            now_ms=now_ms,
        )

    def warm_from_ms(self, newest: BrokerRecord) -> int:
        """See `Handler`. What is finished was in order, so all that comes belongs behind it.

        Up to the grace, that is. A message without event times counts as sent when it happened.
        """
        times = event_times(newest.headers)
        event_ms = newest.timestamp_ms
        if times is not None:
            event_ms = min(times.newest, event_ms) if event_ms > 0 else times.newest
        return event_ms - self._settings.window.keep_ms - self.stream.hold_ms

    def assign(self, partition: int, committed: Mapping[TopicPartition, int]) -> None:
        """See `Handler`."""
        self.revoke(partition)
        window = self._settings.window
        detector = Detector(
            self._settings,
            allowed=self._allowed,
            memory=self.memory,
            index_bytes=self._index_bytes,
            sketches=self._sketches,
            digester=self._digester,
        )
        rows = RequestRows(keep_ms=window.longest_response_ms + window.grace_ms)
        finished = {at.topic: offset for at, offset in committed.items()}
        watch = RuntimeWatch(
            self._engines, window, advisories=KnownAdvisories(advisories(), features())
        )
        taken_by = Partition(
            detector,
            rows,
            sequencer=Sequencer(hold_ms=self.stream.hold_ms, live=window),
            finished_below=finished.get(self._topics.sequences),
            runtime=watch,
            new_detector=self._for_heartbeats,
        )
        self.held[partition] = Held(
            taken_by,
            watch,
            Blindness(taken_by),
            ClearInput(finished.get(self._topics.runtime, 0)),
            ClearInput(finished.get(self._topics.engine_events, 0)),
            self._clock(),
        )

    def revoke(self, partition: int) -> None:
        """See `Handler`."""
        held = self.held.pop(partition, None)
        if held is not None:
            self._lost.add(held.window)

    def take(self, partition: int, records: Sequence[BrokerRecord]) -> Outcome:
        """See `Handler`. A record that was taken before is not taken again."""
        held = self.held[partition]
        messages: list[Message] = []
        for record in records:
            if record.topic == self._topics.sequences:
                messages += self._sequences(held, record)
            elif record.topic == self._topics.runtime:
                messages += self._sample(held, record)
            elif record.topic == self._topics.engine_events:
                messages += self._event(held, record)
        if held.window.waited_s(self._clock()) * 1000 > self.stream.wait_ms:
            messages += self._sent(held.window.drain())
        return Outcome(messages, self._done(partition, held))

    def idle(self, partition: int) -> Outcome:
        """See `Handler`."""
        held = self.held[partition]
        messages = self._sent(held.window.drain())
        if held.runtime.is_rebuilt and held.engine_events.is_rebuilt:
            messages += self._outgoing.findings(held.watch.idle())
        return Outcome(messages, self._done(partition, held))

    def findings_of(self, findings: Iterable[Finding]) -> list[Message]:
        """Return the messages of findings that were made outside the partitions, and count them."""
        return list(self._outgoing.findings(findings))

    def end(self) -> list[Message]:
        """Return what is left once the input has ended for good: rows without an answer.

        After `idle`. A stream that goes on never ends: these rows come with event time.
        """
        return [message for held in self.held.values() for message in self._sent(held.window.end())]

    def totals(self) -> Totals:
        """Return what the orderings and detectors of all partitions have counted, lost ones too."""
        totals = deepcopy(self._lost)
        for held in list(self.held.values()):
            totals.add(held.window)
        return totals

    def _for_heartbeats(self) -> Detector:
        """Return a detector of little memory that shares nothing with those of tenants."""
        if self._heartbeat_memory is None:
            budget = {"memory_bytes": HEARTBEAT_BYTES}
            self._heartbeat_memory = Memory(self._settings.commonness.model_copy(update=budget))
        return Detector(self._settings, memory=self._heartbeat_memory, index_bytes=HEARTBEAT_BYTES)

    def _sequences(self, held: Held, message: BrokerRecord) -> list[Message]:
        window = held.window
        if window.is_known(message.offset):
            return []
        now = self._clock()
        was_warming = window.warming
        opened = self.intake.open(message)
        letters = []
        if window.is_finished(message.offset):
            self.tally.warmup_records += 1
        else:
            letters = self._outgoing.refused(message, opened, now=now)
            self._count(message.topic, opened)
        is_news = not window.is_finished(message.offset)
        told = held.watch.parts(opened.records, is_news=is_news)
        judged = window.take(message.offset, opened.records, now=now)
        if was_warming and not window.warming:
            self.tally.warmup_seconds += now - held.assigned_at
        lost = held.blindness.judged(message, opened, self.intake.ring().key_id)
        told += held.watch.lost(lost, is_news=is_news)
        return [*letters, *self._outgoing.findings(told), *self._sent(judged)]

    def _sample(self, held: Held, message: BrokerRecord) -> list[Message]:
        if not held.runtime.take(message.offset):
            return []
        is_news = held.runtime.is_news(message.offset)
        opened = self.intake.not_ahead(open_records(RuntimeSample, message), message)
        letters = self._checked(message, opened) if is_news else []
        told: list[Finding] = []
        told += held.watch.lost(held.blindness.refused(message, opened), is_news=is_news)
        for sample in opened.records:
            told += held.watch.sample(sample, is_news=is_news)
        return [*letters, *self._outgoing.findings(told)]

    def _event(self, held: Held, message: BrokerRecord) -> list[Message]:
        if not held.engine_events.take(message.offset):
            return []
        is_news = held.engine_events.is_news(message.offset)
        opened = self.intake.not_ahead(open_records(EngineEvent, message), message)
        letters = self._checked(message, opened) if is_news else []
        told: list[Finding] = []
        told += held.watch.lost(held.blindness.refused(message, opened), is_news=is_news)
        for number, event in enumerate(opened.records):
            at = f"{message.offset}.{number}"
            told += held.watch.event(event, is_news=is_news, at=at)
        rows = [row for row in map(rejection_row, opened.records) if row is not None]
        sent = self._outgoing.rows(rows) if is_news else []
        return [*letters, *self._outgoing.findings(told), *sent]

    def _checked(self, message: BrokerRecord, opened: Unpacked[Record]) -> list[Message]:
        self.tally.records[message.topic] += 1
        return self._outgoing.refused(message, opened, now=self._clock())

    def _sent(self, judged: Judged) -> list[Message]:
        return [*self._outgoing.findings(judged.findings), *self._outgoing.rows(judged.rows)]

    def _count(self, topic: str, opened: Unpacked[SequenceRecord]) -> None:
        self.tally.records[topic] += 1
        for record in opened.records:
            if is_reserved(record.tenant):
                continue
            self.tally.sequences[record.kind.value] += 1
            self.tally.tokens += record.token_count
            if not record.token_count:
                self.tally.without_tokens[record.kind.value] += 1

    def _done(self, partition: int, held: Held) -> dict[TopicPartition, int]:
        done = {
            self._topics.sequences: held.window.done,
            self._topics.runtime: held.runtime.done,
            self._topics.engine_events: held.engine_events.done,
        }
        return {
            TopicPartition(topic, partition): offset
            for topic, offset in done.items()
            if offset is not None
        }
