"""Records through the real stream: packers, broker in memory, runner, handler, rules."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from detector.batches import Batches
from detector.config.root import Settings
from detector.finding import Finding
from detector.index.memory import Memory
from detector.pipeline import Detector
from detector.reading import Reading
from detector.sample.traffic import SampleRequest
from detector.service import learn, surest
from detector.sketch.token_table import Secret, TokenTable
from detector.streaming.compose import new_handler
from detector.streaming.local import EventClock, LocalStream
from ingest.broker import Message
from ingest.packing import Packer
from ingest.packing_forms import ClearForm
from ingest.schema_records import EngineEvent, RequestRow, RuntimeSample
from ingest.sealing import KeyRing
from ingest.topics import topic_names
from tests.fakes.cluster.sglang_log import EPOCH_S
from tests.scenarios.inputs import Record, Timed

PARTITIONS = 1
"""All simulated engines are in one KV pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What came out. `overlapping` counts shingles of responses that another tenant has shown."""

    findings: tuple[Finding, ...]
    responses: int
    overlapping: int
    unexplained: int

    @property
    def rules(self) -> Counter[str]:
        """Findings by rule."""
        return Counter(one.rule for one in self.findings)


class _Feed:
    """Sends each record where its kind goes, packed as senders pack."""

    def __init__(self, stream: LocalStream, events: EventClock, settings: Settings) -> None:
        names, packing = topic_names(settings.kafka.topic_prefix), settings.packing
        self._stream, self._events = stream, events
        self._samples = Packer(names.runtime, ClearForm(RuntimeSample), packing)
        self._engine_events = Packer(names.engine_events, ClearForm(EngineEvent), packing)

    def findings(self, records: Iterable[Timed]) -> Iterator[Finding]:
        """Send all, and yield what comes out."""
        for at_ms, record in records:
            self._events.advance(at_ms)
            yield from self._sent(record, self._events())
        for message in [*self._samples.drain(), *self._engine_events.drain()]:
            yield from self._stream.take(message)
        yield from self._stream.finish()

    def _sent(self, record: Record, now_s: float) -> Iterator[Finding]:
        messages: list[Message] = []
        if isinstance(record, RuntimeSample):
            messages += self._samples.add(record, now_s)
        elif isinstance(record, EngineEvent):
            messages += self._engine_events.add(record, now_s)
        elif isinstance(record, RequestRow):
            yield from self._stream.send_row(record)
        else:
            yield from self._stream.send(record)
        for message in [*messages, *self._samples.due(now_s), *self._engine_events.due(now_s)]:
            yield from self._stream.take(message)


def see(records: Iterable[Timed], settings: Settings, secret: Secret, *, history: Path) -> Seen:
    """Send records as they are handed over, and return the last version of each finding."""
    keys, ring = secret.keys(), KeyRing.of(secret)
    table = TokenTable(keys.hash_key, key_id=keys.key_id)
    memory = Memory(settings.detection.commonness)
    learn(
        Detector(settings.detection, memory=memory),
        Reading(settings, table).sequences([str(history)]),
        window=settings.detection.window,
        batches=Batches(settings.detection),
    )
    events = EventClock()
    handler = new_handler(
        settings, ring=lambda: ring, table=table, memory=memory, partitions=PARTITIONS,
        clock=events,
    )  # fmt: skip
    stream = LocalStream(
        handler, topics=topic_names(settings.kafka.topic_prefix), ring=ring,
        partitions=PARTITIONS, settings=settings.stream, packing=settings.packing,
        events=events, clock=events,
    )  # fmt: skip
    findings = surest(_Feed(stream, events, settings).findings(records))
    stats = handler.totals().stats
    return Seen(
        findings=tuple(findings),
        responses=stats.responses,
        overlapping=stats.overlapping_shingles,
        unexplained=stats.unexplained_shingles,
    )


def write_history(
    path: Path, requests: Iterable[SampleRequest], *, begin_s: float = EPOCH_S
) -> Path:
    """Write the traffic of the day before `begin_s` (Unix seconds), to be learned."""
    with path.open("wb") as file:
        for one in requests:
            at_s = begin_s + one.ts
            row = {
                "request_id": one.request_id, "ts": at_s, "ts_end": at_s,
                "engine": "history", "tenant": one.tenant, "model": one.model,
                "prompt_ids": one.prompt_ids, "response_ids": one.response_ids,
            }  # fmt: skip
            file.write(msgspec.json.encode(row) + b"\n")
    return path
