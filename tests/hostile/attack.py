"""Hostile records between good ones on all inputs of a real worker, and what became of each."""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
from aiokafka import AIOKafkaProducer

from detector.finding import Finding
from exporters.metrics import DEAD_LETTERS, RECORDS
from ingest.broker import BrokerRecord, Headers, Message, TopicPartition
from ingest.dead_letter import DeadLetter
from ingest.kafka_io import KafkaReader
from ingest.record_batches import unpack_clear
from ingest.record_headers import SCHEMA
from ingest.schema import decode
from ingest.schema_records import EngineEvent, Record, RequestRow, RuntimeSample
from ingest.topics import topic_names
from tests.fuzz.hostile import CANARY
from tests.hostile.records import GOOD, KINDS, good_events, good_samples, hostile, plain, reasons
from tests.load.process import WorkerProcess
from tests.streams.cluster import committed_of, now_ms
from tests.streams.process import until
from tests.streams.real import Cluster, bleeding

STEP: Final = 100
"""Hostile records of each topic between two rounds of good ones."""

Place = tuple[str, int, int]
"""Topic without its prefix, partition, offset."""


@dataclass
class Told:
    """What one input topic got, and what came of it."""

    sent: int = 0
    refused: int = 0
    """Of those sent: must become dead letters."""
    harmless: int = 0
    """Damage that a record may have: it was taken as what it says."""
    unlike: list[tuple[Place, list[str], list[str]]] = field(default_factory=list)
    """Where the dead letters are not those that must be: reasons wanted, and told."""
    counted: int = 0
    """What the worker's own counter of this topic says, good records included."""
    good: int = 0


@dataclass
class Report:
    """What became of an attack. `good_*` are what was found of the good records, and wanted."""

    topics: dict[str, Told]
    letters: Counter[str] = field(default_factory=Counter)
    """Dead letters by reason, as they lie in the topic."""
    letters_counted: int = 0
    """Records refused, as the worker's counter says."""
    good_found: set[tuple[str, str]] = field(default_factory=set)
    good_wanted: set[tuple[str, str]] = field(default_factory=set)
    good_rows: int = 0
    good_events: int = 0
    told_canary: bool = False
    exit_code: int = -1
    seconds: float = 0.0
    resident_bytes: int = 0


class Attack:
    """Sends `records` hostile records on every input of a cluster, seeded."""

    def __init__(self, cluster: Cluster, records: int, seed: int) -> None:
        self._cluster = cluster
        self._records = records
        self._random = random.Random(seed)
        names = topic_names(cluster.settings.topic_prefix).inputs
        self._names = dict(zip(KINDS, names, strict=True))
        self._wanted: dict[Place, frozenset[str]] = {}
        self.report = Report({topic: Told() for topic in KINDS})

    async def send(self) -> None:
        """Send everything, good records between the hostile ones; all is acknowledged."""
        rounds = -(-self._records // STEP)
        good = list(self._good(rounds, now_ms() - 60_000))
        left = dict.fromkeys(KINDS, self._records)
        kafka = self._cluster.settings
        async with AIOKafkaProducer(
            bootstrap_servers=kafka.servers,
            linger_ms=5,
            max_request_size=kafka.max_message_bytes,
        ) as producer:
            for good_ones in good:
                await self._send_hostile(producer, left)
                for one in good_ones:
                    await producer.send_and_wait(
                        one.topic, one.value, key=one.key, headers=list(one.headers)
                    )

    async def _send_hostile(self, producer: AIOKafkaProducer, left: dict[str, int]) -> None:
        """Send one round to each topic. This client also sends headers without a value."""
        under_way: list[tuple[str, frozenset[str], Any]] = []
        for topic, name in self._names.items():
            for _ in range(min(STEP, left[topic])):
                one = hostile(topic, self._random, now_ms())
                sent = await producer.send(
                    name, one.value, key=one.key, headers=list(one.headers),
                    partition=self._random.randrange(self._cluster.settings.partitions),
                    timestamp_ms=one.sent_ms,
                )  # fmt: skip
                under_way.append((topic, reasons(topic, one), sent))
            left[topic] -= min(STEP, left[topic])
        for topic, wanted, sent in under_way:
            stored = await sent
            told = self.report.topics[topic]
            told.sent += 1
            told.refused += bool(wanted)
            told.harmless += not wanted
            if wanted:
                self._wanted[topic, stored.partition, stored.offset] = wanted

    def _good(self, rounds: int, start_ms: int) -> Iterator[list[Message]]:
        """Yield the good records of each round: a bleed, an event, a sample."""
        sequences = bleeding(self._random.randrange(2**32), rounds, start_ms)
        pool = GOOD.encode()
        events, samples = good_events(rounds, start_ms), good_samples(rounds, start_ms)
        for at in range(rounds):
            prompt, response = sequences[2 * at : 2 * at + 2]
            self.report.good_wanted.add((response.request_id, prompt.tenant))
            bleed = self._cluster.packed([prompt, response], per_message=1)
            made = [
                Message(self._names[topic], value, pool, _labelled(kind))
                for topic, kind, value in (
                    ("runtime", RuntimeSample, next(samples)),
                    ("engine-events", EngineEvent, next(events)),
                )
            ]
            self.report.topics["sequences"].good += len(bleed)
            self.report.topics["runtime"].good += 1
            self.report.topics["engine-events"].good += 1
            self.report.good_events += 1
            yield [*bleed, *made]

    def await_end(self, worker: WorkerProcess, timeout_s: float) -> None:
        """Wait until the worker has committed everything; fails if it has ended."""
        reader = KafkaReader(self._cluster.settings)
        try:
            ends = {
                at: reader.end(at)
                for name in self._names.values()
                for at in (TopicPartition(name, p) for p in range(reader.partitions(name)))
            }
        finally:
            reader.close()
        group = f"{self._cluster.settings.topic_prefix}.workers"

        def all_committed() -> bool:
            assert worker.is_running, worker.last_words()
            done = committed_of(self._cluster.settings, group)
            return all(done.get(at, 0) >= end for at, end in ends.items() if end)

        until(all_committed, timeout_s)

    def judge(self, worker: WorkerProcess) -> None:
        """Fill the report from the topics and from the worker's counters."""
        report = self.report
        for topic, name in self._names.items():
            counts = worker.metrics([RECORDS], {"topic": name})
            report.topics[topic].counted = int(counts[RECORDS])
        report.letters_counted = int(worker.metrics([DEAD_LETTERS])[DEAD_LETTERS])
        report.resident_bytes = worker.usage().resident_bytes
        self._judge_letters()
        decoder = msgspec.json.Decoder(Finding)
        for record in self._read("findings"):
            one = decoder.decode(record.value or b"")
            if one.kv_pool.startswith("pool-"):
                report.good_found.add((one.sink.request_id, one.source.tenant))
        rows = (
            row
            for record in self._read("requests")
            for row in unpack_clear(RequestRow, record.value or b"").records
        )
        report.good_rows = len({row.request_id for row in rows if row.tenant == GOOD})

    def _judge_letters(self) -> None:
        prefix = f"{self._cluster.settings.topic_prefix}."
        found: defaultdict[Place, set[str]] = defaultdict(set)
        for record in self._read("dead-letter"):
            letter = decode(DeadLetter, record.value or b"")
            topic = letter.source_topic.removeprefix(prefix)
            found[topic, letter.source_partition, letter.source_offset].add(plain(letter.reason))
            self.report.letters[letter.reason] += 1
        for place in self._wanted.keys() | found.keys():
            wanted, got = self._wanted.get(place, frozenset()), found[place]
            if wanted != got:
                self.report.topics[place[0]].unlike.append((place, sorted(wanted), sorted(got)))

    def _read(self, topic: str) -> Iterator[BrokerRecord]:
        reader = KafkaReader(self._cluster.settings)
        try:
            yield from read_all(reader, [f"{self._cluster.settings.topic_prefix}.{topic}"])
        finally:
            reader.close()


def _labelled(kind: type[Record]) -> Headers:
    return ((SCHEMA, f"{kind.kind_name}/1".encode()),)


def read_all(reader: KafkaReader, topics: Iterable[str]) -> Iterator[BrokerRecord]:
    """Yield everything that lies in some topics now."""
    parts = [TopicPartition(name, at) for name in topics for at in range(reader.partitions(name))]
    ends = {at: reader.end(at) for at in parts}
    position = {at: reader.beginning(at) for at in parts}
    reader.assign(position)
    while any(position[at] < end for at, end in ends.items()):
        for record in reader.poll(1.0):
            position[TopicPartition(record.topic, record.partition)] = record.offset + 1
            yield record


def attack(cluster: Cluster, records: int, seed: int, log: Path, timeout_s: float) -> Report:
    """Send the records to a running worker and report; AssertionError when it has ended."""
    kafka = cluster.settings
    settings = {
        "key_file": str(cluster.key_file),
        "kafka.bootstrap_servers": kafka.bootstrap_servers,
        "kafka.topic_prefix": kafka.topic_prefix,
        "dead_letters.max_share": "1",
    }
    one = Attack(cluster, records, seed)
    worker = WorkerProcess(settings, log=log)
    try:
        worker.await_ready()
        began = time.monotonic()
        asyncio.run(one.send())
        one.await_end(worker, timeout_s)
        one.report.seconds = time.monotonic() - began
        one.judge(worker)
    finally:
        one.report.exit_code = worker.stop()
    one.report.told_canary = CANARY in log.read_text(errors="replace")
    return one.report


def lines(topics: Iterable[tuple[str, Told]]) -> Iterator[str]:
    """Yield the table of a report."""
    yield "| topic | hostile | dead letter | harmless | good between | not accounted for |"
    yield "|---|---|---|---|---|---|"
    for topic, told in topics:
        lost = len(told.unlike) + abs(told.counted - told.sent - told.good)
        yield (
            f"| {topic} | {told.sent:,} | {told.refused:,} | {told.harmless:,} | {told.good:,} "
            f"| {lost} |"
        )
