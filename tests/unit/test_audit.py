"""`audit`: the true chain of reuse, from audit files by way of a sidecar, and from the topic."""

import gzip
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from detector.audit import read_topic
from detector.cli.app import app
from detector.errors import BrokerError, UsageError
from detector.ledger import trail as trails
from detector.ledger.trail import Subject, Trail
from detector.runtime.settings import RuntimeSettings
from detector.settings import WindowSettings
from detector.streaming.runtime_watch import RuntimeWatch
from ingest.broker import BrokerRecord, Message
from ingest.kv_lease.book import Book
from ingest.kv_lease.events import Event, Owner
from ingest.kv_lease.journal import Journal
from ingest.kv_lease.tags import BlockTagger
from ingest.memory_io import MemoryBroker, MemoryReader
from ingest.opening import open_records
from ingest.record_batches import pack_clear
from ingest.retained import SILENT_S
from ingest.schema_records import EngineEvent, EventKind
from tests.unit.lease_station import KEY, Clock
from tests.unit.runtime_records import event
from tests.unit.sidecars import Station

TOPIC = "bleedwatch.engine-events"


class Cluster:
    """A runtime that serves requests which build on one another, and writes its audit file."""

    def __init__(self, path: Path) -> None:
        self.clock = Clock()
        self.book = Book(
            engine="e0", kv_pool="p", key=KEY, audit=Journal(path), invalidate=len,
            clock=self.clock,
        )  # fmt: skip

    def serve(self, request: str, *, reads: str | None, stores: str, tenant: str = "acme") -> None:
        """Serve a request that reads one cached block, if any, and leaves another."""
        self.clock.ms += 1_000
        owner = Owner(tenant, request, self.clock.ms)
        if reads is not None:
            with self.book.reuse(owner, reads):
                self.clock.ms += 1
        with self.book.lease(owner, stores) as lease:
            self.clock.ms += 1
            lease.keep(3_600_000)


def chain(path: Path) -> None:
    """Write: a is read by b, b's own by c; d stands alone; f reads what e stored in a's place."""
    cluster = Cluster(path)
    cluster.serve("a", reads=None, stores="1")
    cluster.serve("b", reads="1", stores="2")
    cluster.serve("c", reads="2", stores="3")
    cluster.serve("d", reads=None, stores="4", tenant="globex")
    cluster.serve("e", reads=None, stores="1")
    cluster.serve("f", reads="1", stores="5")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["audit", *arguments])


def links(*arguments: str) -> list[tuple[str, str]]:
    done = run(*arguments, "-o", "json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    return [(one["origin"]["request_id"], one["user"]["request_id"]) for one in document["reuse"]]


def test_the_chain_of_a_request_is_followed_both_ways_and_no_further(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    chain(path)
    for request in "abc":
        assert links("--request", request, str(path)) == [("a", "b"), ("b", "c")]
    assert links("--request", "f", str(path)) == [("e", "f")]
    assert links("--request", "d", str(path)) == []
    assert links("--tenant", "acme", str(path)) == [("a", "b"), ("b", "c"), ("e", "f")]
    assert links("--tenant", "globex", str(path)) == []


def test_a_block_is_asked_for_by_its_tag(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    chain(path)
    document = json.loads(run("--request", "a", str(path), "-o", "json").stdout)
    (tag,) = {one["block"] for one in document["events"]}
    for given in (tag, tag[:12]):
        assert links("--block", given, str(path)) == [("a", "b"), ("b", "c"), ("e", "f")]
    assert links("--block", f"{tag}0", str(path)) == []


def test_content_does_not_flow_against_time(tmp_path: Path) -> None:
    """What b stored before it read a's block holds nothing of a."""
    path = tmp_path / "audit.jsonl"
    cluster = Cluster(path)
    cluster.serve("a", reads=None, stores="1")
    cluster.clock.ms += 1
    owner = Owner("acme", "b", cluster.clock.ms)
    with cluster.book.lease(owner, "2") as lease:
        lease.keep(3_600_000)
    cluster.serve("c", reads="2", stores="3")
    with cluster.book.reuse(owner, "1"):
        pass
    assert links("--request", "c", str(path)) == [("b", "c")]
    assert links("--request", "a", str(path)) == [("a", "b")]


def test_several_files_are_merged_by_time_and_broken_lines_counted(tmp_path: Path) -> None:
    whole = tmp_path / "audit.jsonl"
    chain(whole)
    lines = whole.read_bytes().splitlines(keepends=True)
    newer, older = tmp_path / "newer", tmp_path / "older.gz"
    newer.write_bytes(b"nonsense\n\n" + b"".join(lines[5:]))
    older.write_bytes(gzip.compress(b"".join(lines[:5])))
    assert links("--request", "c", str(newer), str(older)) == [("a", "b"), ("b", "c")]
    done = run("--request", "c", str(newer), str(older))
    assert "1 broken entries were left out" in done.stderr
    assert f"{len(lines)} events read, from 2026-" in done.stderr
    assert "as far as the files reach" in done.stderr


def test_the_table_says_who_used_whose(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    chain(path)
    table = CliRunner().invoke(app, ["audit", "--request", "b", str(path)], env={"COLUMNS": "160"})
    assert "USED THAT OF" in table.stdout
    assert "released kept" in table.stdout
    nothing = run("--request", "absent", str(path))
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "none of them is about what was asked for" in nothing.stderr


def test_what_was_before_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    chain(path)
    whole = json.loads(run("--request", "c", str(path), "-o", "json").stdout)
    (read,) = (one for one in whole["reuse"] if one["user"]["request_id"] == "c")
    at = datetime.fromtimestamp(read["at_ms"] / 1000, tz=UTC)
    some = ("--request", "c", str(path), "--since", (at - timedelta(milliseconds=2)).isoformat())
    assert links(*some) == []  # who had stored the block is before that
    late = json.loads(run(*some, "-o", "json").stdout)
    assert late["retention"]["first_ms"] >= read["at_ms"] - 2 > whole["retention"]["first_ms"]
    assert "is left out" in run(*some).stderr
    for ever in ("2000-01-01", "999999999999999999d"):
        assert len(links("--request", "c", str(path), "--since", ever)) == 2
    assert links("--request", "c", str(path), "--since", "10000d") == links(
        "--request", "c", str(path)
    )


def test_of_the_topic_only_what_was_sent_since_is_read() -> None:
    now = [1_000.0]
    broker = MemoryBroker({TOPIC: 2}, now_s=lambda: now[0])
    for number in range(20):
        now[0] += 60
        one = event(EventKind.ALLOCATED, now[0] - 5, tenant="acme", block=f"b{number}")
        broker.publisher().send(Message(TOPIC, pack_clear([one]), b"p")).result()

    class Counting(MemoryReader):
        def poll(self, timeout_s: float) -> Sequence[BrokerRecord]:
            records = super().poll(timeout_s)
            polled.extend(records)
            return records

    polled: list[BrokerRecord] = []
    trail = Trail(Subject(tenant="acme"))
    read_topic(Counting(broker), TOPIC, trail, since_ms=int(now[0] - 300) * 1_000, ahead_ms=60_000)
    assert len(trail.steps) == 5
    assert len(polled) == 7


@pytest.mark.parametrize("given", ["yesterday", "6 hours", "h", "1x", "-5m"])
def test_what_is_no_time_is_refused(given: str) -> None:
    done = run("--tenant", "acme", "--since", given, "absent.jsonl")
    assert isinstance(done.exception, UsageError)
    assert done.exception.where == "--since"
    assert done.exception.hint.startswith("such as")


@pytest.mark.parametrize("given", [(), ("--request", "a", "--tenant", "acme")])
def test_one_question_at_a_time(given: tuple[str, ...]) -> None:
    done = run(*given, "absent.jsonl")
    assert isinstance(done.exception, UsageError)
    assert "--request ID" in done.exception.hint


def test_a_sidecar_sends_the_file_and_the_topic_tells_the_same(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = tmp_path / "server.log"
    log.write_text("")
    station = Station(tmp_path, str(log), audit_files=[str(path)], own_logs=True)
    chain(path)
    with path.open("ab") as stream:
        stream.write(b"nonsense\n")
    size = path.stat().st_size
    Journal(path)(Event(kind="reused", engine="e0", kv_pool="p", at_ms=Clock().ms + 60_000,
                        request_id="thief", tenant="globex", created_at_ms=1,
                        block=BlockTagger(KEY, "e0").tag("5")))  # fmt: skip
    running = station.start()
    station.turns(5)
    (audit,) = [one for one in running.sidecar.inputs if one.log.name == str(path)]
    assert audit.coverage.broken_by_reason == {"undecodable": 1}
    station.stop()
    assert path.stat().st_size > size, "an audit file is never emptied"
    told = [
        one
        for message in station.messages(TOPIC)
        for one in open_records(EngineEvent, message).records
    ]
    trail = Trail(Subject(request_id="c"))
    read_topic(station.broker.reader(), TOPIC, trail)
    assert [(one.origin.request_id, one.user.request_id) for one in trail.links()] == [
        ("a", "b"),
        ("b", "c"),
    ]
    assert trail.events == len(told)
    watch = RuntimeWatch(RuntimeSettings(), WindowSettings())
    found = [one for record in told for one in watch.event(record, is_news=True)] + watch.idle()
    assert [(one.rule, one.sink.request_id, one.source.request_id) for one in found] == [
        ("BW208", "thief", "f")
    ]


class Silent(MemoryReader):
    """A reader to whom the broker sends nothing any more."""

    def poll(self, timeout_s: float) -> Sequence[BrokerRecord]:
        del timeout_s
        return ()


def test_a_topic_that_falls_silent_is_an_error_with_advice() -> None:
    broker = MemoryBroker({TOPIC: 1})
    broker.publisher().send(Message(TOPIC, b"{}"))
    seconds = iter([0.0, SILENT_S / 2, SILENT_S])
    with pytest.raises(BrokerError, match="not read to its end"):
        read_topic(Silent(broker), TOPIC, Trail(Subject(tenant="t")), clock=lambda: next(seconds))


def test_what_had_no_room_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trails, "MAX_BLOCKS", 10)
    trail = Trail(Subject(tenant="acme"))
    for number in range(25):
        trail.take(event(EventKind.ALLOCATED, number, tenant="acme", block=f"b{number}"))
    assert trail.forgotten == 15
