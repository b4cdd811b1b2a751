"""The Faust worker on a real broker: nothing is lost by a stop, a move or a fault."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ingest.broker import TopicPartition
from ingest.faust_app import FATAL
from tests.kafka.cluster import running
from tests.streams.cluster import Sent, Stream, make_stream, now_ms, pairs
from tests.streams.pairs import WINDOW_MS
from tests.streams.process import until, worker

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS


@pytest.fixture
def stream(kafka: str, topic_prefix: str) -> Stream:
    return make_stream(kafka, topic_prefix)


def even(start_ms: int, count: int, *, step_ms: int = 1000, keys: int = 7) -> list[Sent]:
    return [Sent(i % 2, start_ms + i * step_ms, f"k{i % keys}") for i in range(count)]


def await_found(stream: Stream, records: Sequence[Sent]) -> None:
    wanted = pairs(records)
    until(lambda: wanted <= set(stream.found()))
    assert set(stream.found()) == wanted


def ends(records: Sequence[Sent]) -> dict[int, int]:
    return {p: sum(one.partition == p for one in records) for p in (0, 1)}


def test_pairs_are_found_committed_and_a_stop_is_quick(stream: Stream, tmp_path: Path) -> None:
    records = even(now_ms() - 50_000, 50)
    stream.send(records)
    with worker(stream.arguments(), tmp_path / "log") as one:
        await_found(stream, records)
        assert set(stream.found().values()) == {1}
        stream.await_committed(ends(records))
        began = time.monotonic()
        assert one.stop() == 0
        assert time.monotonic() - began < 5


def test_an_hours_stop_loses_no_pair(stream: Stream, tmp_path: Path) -> None:
    """All is over an hour old: a window that the clock of the machine decides would be empty."""
    began = now_ms() - 3 * HOUR_MS
    old = even(began, 20)
    before = even(began + HOUR_MS, 40)
    stream.send([*old, *before])
    with worker(stream.arguments(), tmp_path / "log") as one:
        stream.await_committed(ends([*old, *before]))
        assert one.stop() == 0
    after = even(before[-1].event_ms + 2 * MINUTE_MS, 40)
    stream.send(after)
    with worker(stream.arguments(), tmp_path / "log") as one:
        await_found(stream, [*old, *before, *after])
        one.wait_event("warm", 2)
        again = sum(told["records"] for told in one.told if told["event"] == "warm")
        assert again == len(before), "the window is read again, and no more than the window"
    assert set(stream.found().values()) == {1}, "what was found before is not found again"


def test_what_waits_for_others_is_not_committed_and_delays_no_stop(
    stream: Stream, tmp_path: Path
) -> None:
    records = even(now_ms() - 20_000, 20)
    stream.send(records)
    with worker(stream.arguments(idle_s=600), tmp_path / "log") as one:
        stream.await_committed({0: 9, 1: 9})
        began = time.monotonic()
        assert one.stop() == 0
        assert time.monotonic() - began < 5
    at = TopicPartition(stream.inputs[0], 1)
    assert stream.committed()[at] == 9, "the newest record waits for what may belong before it"
    with worker(stream.arguments(), tmp_path / "log"):
        await_found(stream, records)
        stream.await_committed(ends(records))


def test_workers_come_and_go(stream: Stream, tmp_path: Path) -> None:
    first = even(now_ms() - 2 * MINUTE_MS, 60)
    second = even(first[-1].event_ms + 1000, 60)
    third = even(second[-1].event_ms + 1000, 60)
    stream.send(first)
    with worker(stream.arguments(), tmp_path / "a.log") as a:
        stream.await_committed(ends(first))
        with worker(stream.arguments(), tmp_path / "b.log") as b:
            b.wait_event("assign")
            until(lambda: sorted([*a.partitions(), *b.partitions()]) == [0, 1])
            stream.send(second)
            stream.await_committed(ends([*first, *second]))
            kept = a.partitions()
            assert len(kept) == 1, "each has one"
            assert b.stop() == 0
        a.wait_event("assign", 3)
        stream.send(third)
        await_found(stream, [*first, *second, *third])
        stream.await_committed(ends([*first, *second, *third]))
        began = [told["partition"] for told in a.told if told["event"] == "assign"]
        assert [began.count(p) for p in kept] == [1], "what a worker keeps is not read again"
        assert a.stop() == 0
    assert set(stream.found().values()) == {1}


def test_a_fault_ends_the_process_and_commits_nothing_of_the_batch(
    stream: Stream, tmp_path: Path
) -> None:
    good = even(now_ms() - 50_000, 20)
    stream.send(good)
    with worker(stream.arguments(), tmp_path / "log") as one:
        stream.await_committed(ends(good))
        stream.send([Sent(0, now_ms(), "fine"), Sent(0, now_ms(), "fatal")])
        assert one.ended() == FATAL
    assert stream.committed()[TopicPartition(stream.inputs[0], 0)] in {10, 11}
    log = (tmp_path / "log").read_text()
    assert "the worker ends: RuntimeError" in log
    assert "RuntimeError: fatal" not in log, "the message of a foreign error may quote a record"


def test_what_cannot_be_read_is_a_dead_letter(stream: Stream, tmp_path: Path) -> None:
    records = [
        Sent(0, now_ms() - 3000, "a"),
        Sent(0, now_ms() - 2000, "b c"),
        Sent(0, now_ms(), "a"),
    ]
    stream.send(records)
    with worker(stream.arguments(), tmp_path / "log"):
        stream.await_committed({0: 3})
    topic = stream.inputs[0]
    assert set(stream.found()) == {f"dead {topic} 1", *pairs(records)}


def test_only_what_is_in_the_window_makes_a_pair(stream: Stream, tmp_path: Path) -> None:
    start = now_ms() - HOUR_MS
    records = [
        Sent(0, start, "a"),
        Sent(0, start + WINDOW_MS, "a"),
        Sent(0, start + 2 * WINDOW_MS + 1, "a"),
    ]
    stream.send(records)
    with worker(stream.arguments(), tmp_path / "log"):
        stream.await_committed({0: 3})
    assert set(stream.found()) == {f"0 a {start} {start + WINDOW_MS}"}


def test_a_stop_is_bounded_while_the_broker_is_away(tmp_path: Path) -> None:
    with running(tmp_path / "kafka") as server:
        stream = make_stream(server.bootstrap, "away")
        with worker(stream.arguments(), tmp_path / "log") as one:
            one.wait_event("assign", 2)
            server.kill()
            began = time.monotonic()
            assert one.stop() == 0
            assert time.monotonic() - began < 20
