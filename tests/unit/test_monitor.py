"""A worker under watch: what a stream does shows in state, metrics and probes."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from detector.config.root import Settings
from detector.errors import TooManyDeadLettersError
from detector.index.memory import Memory
from detector.index.selection import sampling_of
from detector.index.shared_memory import SharedMemory
from detector.index.showings import Showings
from detector.index.tenant_table import mark_of
from detector.sketch.tag_keys import TagKeys
from detector.streaming.commonness_feed import CommonnessFeed
from detector.streaming.exchange import Exchange
from detector.streaming.outgoing import Outgoing
from detector.streaming.sharing import SharingHandler
from detector.streaming.watched import Watched
from exporters.settings import MetricsSettings
from ingest.broker import Message, Reader, TopicPartition
from ingest.commonness_records import SHARED, SHOWN, encode_showings
from ingest.dead_letter_limit import DeadLetterSettings
from ingest.kafka_settings import KafkaSettings
from ingest.memory_runner import MemoryRunner
from ingest.packing_settings import PackingSettings
from ingest.schema_records import RequestRow
from tests.unit.sequences import SETTINGS, join, prompt, response, text
from tests.unit.sharing import KEY_ID, TAG_KEY
from tests.unit.streams import TOPICS, Stream

SECRET = text(1, 64)


@dataclass
class Runner:
    """What a runner over the broker in memory says of itself."""

    reader: Reader
    assigned: bool = True
    warm: set[int] = field(default_factory=set)
    held: tuple[int, ...] = (0,)

    def warming(self) -> list[int]:
        return [partition for partition in self.held if partition not in self.warm]

    def end_of(self, at: TopicPartition) -> int | None:
        return self.reader.end(at)


class Worker:
    """A stream in memory with one watched worker on it, which shares if its memory can."""

    def __init__(
        self, *, limit: DeadLetterSettings | None = None, memory: Memory | None = None
    ) -> None:
        self.stream = Stream()
        handler = self.stream.handler(limit=limit, memory=memory)
        self.tally = handler.tally
        exchange, outer = None, None
        if isinstance(memory, SharedMemory):
            exchange = Exchange(
                memory, SETTINGS.commonness, key_id=KEY_ID, sampling=sampling_of(SETTINGS.index),
                ranges=1, prefix="t", writer=b"worker-1",
            )  # fmt: skip
            feed = CommonnessFeed(self.stream.broker.reader(), exchange)
            outer = SharingHandler(handler, exchange, feed)
        settings = Settings(
            metrics=MetricsSettings(port=0), kafka=KafkaSettings(topic_prefix="t", partitions=1)
        )
        self.key_file_unreadable = False
        self.watched = Watched(
            settings, handler, outer=outer, exchange=exchange,
            key_file_unreadable=lambda: self.key_file_unreadable,
        )  # fmt: skip
        self.runner = MemoryRunner(
            self.watched.handler,
            reader=self.stream.broker.reader(),
            publisher=self.stream.publisher,
            topics=TOPICS.inputs,
        )
        self.status = Runner(self.stream.broker.reader(), warm={0})


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
def get(worker: Worker) -> Iterator[Callable[[str], str]]:
    with worker.watched.serving(worker.status) as server:
        yield lambda path: fetch(server.port, path)


def fetch(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()


def metric(text_: str, name: str, **labels: str) -> float:
    """Return the value of one series."""
    return next(
        sample.value
        for family in text_string_to_metric_families(text_)
        for sample in family.samples
        if sample.name == name and sample.labels == labels
    )


def bleed(worker: Worker) -> None:
    """Send a prompt and a response of another tenant that holds it."""
    worker.stream.send([prompt("a", "1", 100, SECRET)])
    worker.stream.send([response("b", "2", 110, join(text(2, 20), SECRET, text(3, 20)))])


def test_what_was_judged_and_found_is_counted(worker: Worker, get: Callable[[str], str]) -> None:
    bleed(worker)
    worker.runner.start()
    worker.runner.finish()
    seen = get("/metrics")
    sure = {"rule": "BW001", "severity": "info", "confidence": "low"}
    high = {"rule": "BW001", "severity": "high", "confidence": "high"}
    found = [metric(seen, "bleedwatch_findings_total", **one) for one in (sure, high)]
    assert found == [0, 1]
    assert metric(seen, "bleedwatch_records_total", topic="t.sequences") == 2
    assert metric(seen, "bleedwatch_sequences_total", kind="response") == 1
    assert metric(seen, "bleedwatch_tokens_total") == 64 + 104
    assert metric(seen, "bleedwatch_unexplained_shingles_total") == 55
    assert metric(seen, "bleedwatch_index_postings", partition="0") == 55 + 95
    assert metric(seen, "bleedwatch_watermark_timestamp_seconds", partition="0") == 110.6
    assert metric(seen, "bleedwatch_lag_records", topic="t.sequences", partition="0") == 0
    assert metric(seen, "bleedwatch_batch_seconds_count") == 1
    assert metric(seen, "bleedwatch_commonness_reach_seconds") == 11


def test_unread_records_lag(worker: Worker, get: Callable[[str], str]) -> None:
    worker.runner.start()
    bleed(worker)
    seen = get("/metrics")
    assert metric(seen, "bleedwatch_lag_records", topic="t.sequences", partition="0") == 2
    assert metric(seen, "bleedwatch_lag_records", topic="t.runtime", partition="0") == 0


def test_bad_records_and_blindness_are_counted(worker: Worker, get: Callable[[str], str]) -> None:
    worker.stream.send_raw(Message(TOPICS.sequences, b"no batch", b"p"), at_ms=1_000)
    worker.stream.send([prompt("a", "1", 100, text(1, 0))])
    worker.runner.start()
    worker.runner.finish()
    seen = get("/metrics")
    assert metric(seen, "bleedwatch_dead_letters_total", reason="seal_broken") == 0
    letters = [
        sample.value
        for family in text_string_to_metric_families(seen)
        for sample in family.samples
        if sample.name == "bleedwatch_dead_letters_total"
    ]
    assert sum(letters) == 1
    assert metric(seen, "bleedwatch_blind_sequences_total", cause="no_tokens") == 1


def test_rows_that_cannot_be_packed_are_counted(worker: Worker, get: Callable[[str], str]) -> None:
    """MessagePack carries 64 bits; a time of more has never been seen, and would not be carried."""
    outgoing = Outgoing(
        TOPICS, worker.tally, limit=DeadLetterSettings(), packing=PackingSettings(), now_ms=int
    )
    fits = RequestRow(
        tenant="a", request_id="1", kv_pool="p", engine="e", model="", started_at_ms=1
    )
    assert len(outgoing.rows([fits, msgspec.structs.replace(fits, prompt_tokens=2**70)])) == 1
    worker.runner.start()
    seen = get("/metrics")
    assert metric(seen, "bleedwatch_rows_refused_total", reason="unencodable") == 1
    assert metric(seen, "bleedwatch_rows_refused_total", reason="too_large") == 0


def test_a_key_file_that_cannot_be_read_is_told(worker: Worker, get: Callable[[str], str]) -> None:
    worker.runner.start()
    assert metric(get("/metrics"), "bleedwatch_key_file_unreadable") == 0
    worker.key_file_unreadable = True
    bleed(worker)
    worker.runner.finish()
    assert metric(get("/metrics"), "bleedwatch_key_file_unreadable") == 1


def test_a_batch_that_ends_the_process_is_measured_too() -> None:
    limit = DeadLetterSettings(max_share=0.1, min_messages=1)
    worker = Worker(limit=limit)
    worker.stream.send_raw(Message(TOPICS.sequences, b"no batch", b"p"), at_ms=1_000)
    worker.runner.start()
    with worker.watched.serving(worker.status) as server:
        with pytest.raises(TooManyDeadLettersError):
            worker.runner.finish()
        assert metric(fetch(server.port, "/metrics"), "bleedwatch_batch_seconds_count") == 1


def test_readiness_follows_the_runner(worker: Worker, get: Callable[[str], str]) -> None:
    worker.status.assigned = False
    assert "no answer from the group" in get("/readyz")
    worker.runner.start()
    worker.status.assigned = True
    worker.status.warm.clear()
    assert json.loads(get("/readyz"))["reasons"] == ["rebuilding the window of partition 0"]
    worker.status.warm.add(0)
    assert json.loads(get("/readyz")) == {"ok": True, "reasons": []}


def test_liveness_follows_the_beat(worker: Worker, get: Callable[[str], str]) -> None:
    worker.watched.beat()
    assert json.loads(get("/livez"))["ok"]


def test_rebuilt_windows_are_told(worker: Worker, get: Callable[[str], str]) -> None:
    worker.watched.warmed_up(0, 1.5, 12)
    worker.watched.warmed_up(1, 0.5, 3)
    assert metric(get("/metrics"), "bleedwatch_warmup_seconds_total") == 2.0


def test_a_partition_that_left_takes_its_counts_not_with_it(
    worker: Worker, get: Callable[[str], str]
) -> None:
    bleed(worker)
    worker.runner.start()
    worker.runner.finish()
    before = metric(get("/metrics"), "bleedwatch_response_shingles_total")
    worker.runner.stop()
    seen = get("/metrics")
    assert before > 0
    assert metric(seen, "bleedwatch_response_shingles_total") == before
    assert metric(seen, "bleedwatch_assigned_partitions") == 0


def junk_of_others() -> Iterator[bytes]:
    """Yield what no worker of these keys writes into the topic of showings."""
    tags = np.arange(3, dtype=np.int64)
    told = Showings(tags, np.full(3, mark_of(1, 0)))
    yield b"\xff junk"
    yield encode_showings(SHARED, told, key_id=KEY_ID, now_ms=0)
    yield encode_showings(SHOWN, told, key_id="cafecafe", now_ms=0)


def test_what_workers_tell_each_other_is_counted() -> None:
    worker = Worker(memory=SharedMemory(SETTINGS.commonness, TagKeys(TAG_KEY)))
    worker.stream.send([prompt("a", "1", 100, SECRET)])
    for value in junk_of_others():
        worker.stream.send_raw(Message(TOPICS.shingles, value, partition=0))
    worker.runner.start()
    worker.runner.finish()
    with worker.watched.serving(worker.status) as server:
        seen = fetch(server.port, "/metrics")
    assert metric(seen, "bleedwatch_shared_showings_total", direction="told") == 55
    assert metric(seen, "bleedwatch_shared_taints_total", direction="told") == 0
    refused = ("malformed", "unknown_key", "wrong_range")
    counts = [metric(seen, "bleedwatch_shared_refused_total", reason=one) for one in refused]
    assert counts == [2, 1, 0]
    assert metric(seen, "bleedwatch_shared_range_bytes", partition="0") > 0
