"""What the program reads from a recording: sequences, events and samples in the order of time.

Readers, signal patterns and mappings are the program's; only the fetching of pages and frames is
left out.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from detector.config.root import Settings
from detector.model import Sequence
from detector.reading import Reading
from detector.signals import BUILT_IN, built_in
from detector.sketch.token_table import Secret, TokenTable
from ingest.kv_events.feed import KvEventFeed
from ingest.kv_events.frames import Frame
from ingest.kv_events.settings import KvEventSource
from ingest.kv_events.tags import BlockTags
from ingest.schema_records import EngineEvent, RequestRow, RuntimeSample, SequenceRecord
from ingest.scrape.exposition import parse_exposition
from ingest.scrape.mapping import Mapping, load_mappings
from ingest.scrape.reading import read_ranks
from ingest.scrape.samples import EngineName, sample_of
from ingest.scrape.unreleased import RankMemory
from ingest.signals.signals import Signals
from ingest.tenancy import Tenancy
from tests.fakes.cluster.recording import Recording, Scrape
from tests.fakes.cluster.sglang_log import EPOCH_S

Record = Sequence | RequestRow | RuntimeSample | EngineEvent


class Timed(NamedTuple):
    """A record, and the moment in ms at which it is handed over."""

    at_ms: int
    record: Record


def inputs(
    recording: Recording, settings: Settings, secret: Secret, *, requests: Path
) -> Iterator[Timed]:
    """Yield all that a recording holds; `requests` is the log whose requests are read."""
    keys = secret.keys()
    reading = Reading(settings, TokenTable(keys.hash_key, key_id=keys.key_id))
    records = reading.records([str(requests)], engine=requests.stem, kv_pool=recording.kv_pool)
    logs = [_events(path, engine, recording.kv_pool) for engine, path in recording.logs.items()]
    yield from heapq.merge(
        _in_order(records),
        *map(_in_order, logs),
        _in_order(_samples(recording)),
        _in_order(_kv_events(recording, settings, secret)),
        key=lambda one: one.at_ms,
    )


def _in_order(records: Iterable[Record]) -> Iterator[Timed]:
    """Hand records over in their order, none before the one ahead of it."""
    now_ms = 0
    for record in records:
        now_ms = max(now_ms, _moment(record))
        yield Timed(now_ms, record)


def _moment(record: Record) -> int:
    if isinstance(record, RuntimeSample):
        return record.sampled_at_ms
    if isinstance(record, EngineEvent):
        return record.at_ms
    ended_ms = record.ended_at_ms
    return record.started_at_ms if ended_ms is None else ended_ms


def _events(path: Path, engine: str, kv_pool: str) -> Iterator[EngineEvent]:
    signals = Signals([built_in(kind) for kind in BUILT_IN])
    with path.open("rb") as lines:
        for line in lines:
            event = signals.event(line.rstrip(b"\n"), engine, kv_pool, EPOCH_S * 1000)
            if event is not None:
                yield event


def _samples(recording: Recording) -> Iterator[RuntimeSample]:
    mapping = load_mappings()[recording.kind]
    memories = {engine: RankMemory() for engine in recording.logs}
    for scrape in recording.scrapes:
        yield _sample(scrape, mapping, memories[scrape.engine], recording.kv_pool)


def _sample(scrape: Scrape, mapping: Mapping, memory: RankMemory, kv_pool: str) -> RuntimeSample:
    page = parse_exposition(scrape.page, mapping.metric_names().__contains__)
    documents = [
        (one, scrape.documents[path])
        for one in mapping.documents
        for path in one.paths
        if path in scrape.documents
    ]
    (reading,) = read_ranks(mapping, page, documents)
    name = EngineName(scrape.engine, kv_pool, None, None)
    return sample_of(reading, mapping, memory, name, int((EPOCH_S + scrape.at_s) * 1000))


class _Frames:
    """One published message at a time."""

    def __init__(self) -> None:
        self.payload = b""
        self.counts: Counter[str] = Counter()

    def poll(self, _: float) -> list[Frame]:
        return [Frame(self.payload)]


def _kv_events(recording: Recording, settings: Settings, secret: Secret) -> Iterator[EngineEvent]:
    keys = secret.keys()
    table, frames = TokenTable(keys.hash_key, key_id=keys.key_id), _Frames()
    feeds = {
        engine: KvEventFeed(
            frames,
            KvEventSource(endpoint="tcp://simulated", engine=engine, kv_pool=recording.kv_pool),
            settings.kv_events,
            tenancy=Tenancy(settings.tenancy),
            table=lambda _: table,
            tags=lambda: BlockTags(keys.tag_key),
        )
        for engine in recording.logs
    }
    for message in recording.published:
        frames.payload = message.payload
        for made in feeds[message.engine](message.at_s):
            assert not isinstance(made, SequenceRecord)
            yield made
