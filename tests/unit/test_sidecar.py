"""The loop of a sidecar: nothing is forgotten before it is acknowledged, whatever happens when."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from ingest.key_file import load_secret, new_secret
from ingest.opening import open_records, open_sequences
from ingest.schema_records import EngineEvent, EventKind, RuntimeSample
from ingest.sealing import KeyRing
from tests.e2e.traffic import WRITERS, pairs
from tests.unit.growing_log import GrowingLog, pack
from tests.unit.sidecars import Station

PAIRS = 12

BY_USER = [{"kind": "field", "name": "user"}]

formats = pytest.mark.parametrize("log_format", WRITERS)


def written(folder: Path, log_format: str, count: int = PAIRS) -> Path:
    return WRITERS[log_format](folder / f"whole.{log_format}", pairs(count))


@formats
def test_a_log_reaches_the_broker_once(tmp_path: Path, log_format: str) -> None:
    whole = written(tmp_path, log_format)
    station = Station(tmp_path, str(whole))
    station.start()
    station.turns()
    station.stop()
    told = station.told()
    assert set(told) == station.expected(whole)
    assert len(told) == 4 * PAIRS
    assert set(told.values()) == {1}


@formats
def test_a_second_start_sends_nothing_again(tmp_path: Path, log_format: str) -> None:
    whole = written(tmp_path, log_format)
    station = Station(tmp_path, str(whole))
    for _ in range(3):
        station.start()
        station.turns()
        station.crash()
    assert set(station.told().values()) == {1}


@formats
def test_what_is_not_acknowledged_is_read_again(tmp_path: Path, log_format: str) -> None:
    whole = written(tmp_path, log_format)
    station = Station(tmp_path, str(whole))
    station.start()
    station.gate.is_open = False
    station.turns(5)
    before = station.told()
    station.crash()
    station.start()
    station.turns(5)
    station.crash()
    assert len(before) >= 4 * PAIRS - 2
    assert all(count == 2 for told, count in station.told().items() if told in before)


@formats
@pytest.mark.parametrize("seed", range(5))
def test_whenever_it_is_killed_nothing_is_lost_and_nothing_is_half(
    tmp_path: Path, log_format: str, seed: int
) -> None:
    chance = Random(seed)
    whole = written(tmp_path, log_format, 30)
    content = whole.read_bytes()
    log = GrowingLog(tmp_path / "engine.log")
    station = Station(tmp_path, str(log.path))
    station.start()
    station.turns()
    while content:
        size = chance.randrange(1, 4000)
        log.write(content[:size])
        content = content[size:]
        station.gate.is_open = chance.random() < 0.5
        station.turns(chance.randrange(3))
        match chance.randrange(12):
            case 0 | 1 | 2:
                station.crash()
                station.start()
            case 3:
                log.rotate()
            case 4:
                station.turns(1)
                log.copy_truncate()
            case 5 if (moved := log.path.with_name("engine.log.1")).exists():
                pack(moved)
            case 6:
                station.gate.let_go()
    station.gate.is_open = True
    station.gate.let_go()
    station.turns(40)
    station.stop()
    log.close()
    assert set(station.told()) == station.expected(whole)


def test_a_refused_message_is_sent_again(tmp_path: Path) -> None:
    whole = written(tmp_path, "jsonl")
    station = Station(tmp_path, str(whole))
    running = station.start()
    station.gate.refuses = True
    station.turns(3)
    assert running.sidecar.sending.failed_sends
    assert [reason for reason in running.look().reasons if "is away" in reason]
    station.gate.refuses = False
    station.stop()
    assert set(station.told()) == station.expected(whole)


def test_a_request_without_ids_becomes_a_row(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"request_id": "r-1", "ts": 5, "tenant": "acme", "node": "n"}\n')
    station = Station(tmp_path, str(log), format="jsonl")
    station.start()
    station.turns()
    station.stop()
    assert [(row.tenant, row.request_id, row.kv_pool) for row in station.rows()] == [
        ("acme", "r-1", "n")
    ]
    assert not list(station.sequences())


UNDER_WAY = (
    "DEBUG 11-29 14:03:11 [request_logger.py:88] Request a JSON body: {\r\n"
    'DEBUG 11-29 14:03:11 [request_logger.py:88] "messages": [\r\n'
)


def stopped(station: Station) -> dict[str, int]:
    """Stop a sidecar of one log; return what it counted as broken."""
    assert station.running is not None
    (one,) = station.running.sidecar.inputs
    station.stop()
    return one.coverage.broken_by_reason


def test_a_message_under_way_at_a_stop_is_read_by_the_next_start(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text(UNDER_WAY, encoding="utf-8", newline="")
    station = Station(tmp_path, str(log), format="vllm", tenancy_rules=BY_USER)
    station.start()
    station.turns()
    assert stopped(station) == {}
    with log.open("a", encoding="utf-8") as more:
        more.write(
            'DEBUG 11-29 14:03:11 [request_logger.py:88] "q"], "user": "acme"}\n'
            "DEBUG 11-29 14:03:11 [request_logger.py:55] Request chatcmpl-a details: "
            "prompt: None, prompt_token_ids: [5, 6, 7], prompt_embeds shape: None.\n"
        )
    station.start()
    station.turns()
    assert stopped(station) == {}
    assert [one.tenant for one in station.sequences()] == ["acme"]


def test_a_message_under_way_in_a_pipe_at_a_stop_is_lost_and_counted(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    station = Station(tmp_path, str(pipe), format="vllm")
    station.start()
    station.turns()
    with pipe.open("w", encoding="utf-8", newline="") as writer:
        writer.write(UNDER_WAY)
        writer.flush()
        station.turns()
        assert stopped(station) == {"truncated_message": 1}


def test_patterns_find_logs_that_come_later_and_leave_rotated_ones_out(tmp_path: Path) -> None:
    whole = written(tmp_path, "jsonl")
    lines = whole.read_bytes().splitlines(keepends=True)
    logs = tmp_path / "logs"
    logs.mkdir()
    station = Station(tmp_path, str(logs / "*.log*"))
    running = station.start()
    (logs / "a.log").write_bytes(b"".join(lines[:5]))
    (logs / "a.log.1").write_bytes(b"old\n")
    (logs / "b.log").write_bytes(b"".join(lines[5:]))
    station.turns()
    assert [Path(one.log.name).name for one in running.sidecar.inputs] == ["a.log", "b.log"]
    station.stop()
    assert set(station.told()) == station.expected(whole)


def test_a_rotated_key_holds_from_the_next_line_on(tmp_path: Path) -> None:
    whole = written(tmp_path, "jsonl")
    lines = whole.read_bytes().splitlines(keepends=True)
    log = tmp_path / "engine.log"
    log.write_bytes(b"".join(lines[:6]))
    station = Station(tmp_path, str(log), sealing={"reread_ms": 1})
    station.start()
    station.turns()
    earlier = KeyRing.of(load_secret(station.key))
    station.key.unlink()
    new_secret(station.key)
    time.sleep(0.01)  # ten times sealing.reread_ms
    with log.open("ab") as file:
        file.write(b"".join(lines[6:]))
    station.turns()
    station.stop()
    ring = KeyRing.of(load_secret(station.key))
    seen: dict[str, set[str]] = {}
    for message in station.messages(station.topics.sequences):
        for one in (earlier, ring):
            for record in open_sequences(message, one).records:
                seen.setdefault(one.key_id, set()).add(record.request_id)
    assert {key: len(names) for key, names in seen.items()} == {
        earlier.key_id: 6,
        ring.key_id: len(lines) - 6,
    }


def test_events_of_lines_and_records_of_feeds_are_sent_too(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(b"[2026-11-29 18:00:21] pool memory leak detected!\n" + b"other\n")

    def signals_of(engine: str, kv_pool: str | None) -> Callable[[bytes], EngineEvent | None]:
        def event(line: bytes) -> EngineEvent | None:
            if b"leak" not in line:
                return None
            return EngineEvent(
                kind=EventKind.LEAK_DETECTED, engine=engine, kv_pool=kv_pool or engine, at_ms=1
            )

        return event

    def feed(_now_s: float) -> list[RuntimeSample]:
        return [RuntimeSample(engine="e", kv_pool="p", sampled_at_ms=2, engine_kind="vllm")]

    station = Station(tmp_path, str(log), kv_pool="pool")
    station.start(feeds=[feed], signals_of=signals_of)
    station.turns(2)
    station.stop()
    events = [
        event
        for message in station.messages(station.topics.engine_events)
        for event in open_records(EngineEvent, message).records
    ]
    assert [(one.kind, one.engine, one.kv_pool) for one in events] == [
        (EventKind.LEAK_DETECTED, "engine-0", "pool")
    ]
    samples = [
        sample
        for message in station.messages(station.topics.runtime)
        for sample in open_records(RuntimeSample, message).records
    ]
    assert samples
    assert {one.sampled_at_ms for one in samples} == {2}


def test_a_checkpoint_that_cannot_be_written_is_told_and_tried_again(tmp_path: Path) -> None:
    whole = written(tmp_path, "jsonl")
    folder = tmp_path / "state"
    folder.mkdir()
    station = Station(tmp_path, str(whole), checkpoint_file=str(folder / "checkpoint"))
    running = station.start()
    station.turns()
    folder.rename(tmp_path / "away")
    with whole.open("ab") as file:
        file.write(whole.read_bytes())
    station.turns(6)
    assert [reason for reason in running.look().reasons if "sidecar.checkpoint_file" in reason]
    (tmp_path / "away").rename(folder)
    station.stop()
    assert running.sidecar.checkpoint_problem is None
