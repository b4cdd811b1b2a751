"""What a sidecar follows besides plain files, and requests whose end does not come."""

import json
import os
from pathlib import Path
from typing import Any

import zstandard

from tests.e2e.traffic import pairs, write_jsonl
from tests.unit.sidecars import Station

PAIRS = 5


def sglang(event: str, rid: str, second: int, **more: Any) -> str:
    record = {
        "timestamp": f"2026-11-29T18:{second // 60:02d}:{second % 60:02d}",
        "event": f"request.{event}",
        "rid": rid,
        "obj": {"rid": rid, "text": None, "input_ids": list(range(second, second + 40))},
        "headers": {"x-tenant-id": "acme"},
        **more,
    }
    return json.dumps(record) + "\n"


def answer(rid: str, second: int) -> str:
    meta = {"id": rid, "prompt_tokens": 40, "completion_tokens": 3}
    return sglang("finished", rid, second, out={"output_ids": [1, 2, 3], "meta_info": meta})


def position(folder: Path) -> int:
    """Return the position that the checkpoint has for the one log."""
    (log,) = json.loads((folder / "checkpoint").read_bytes())["logs"]
    return int(log["position"])


def test_an_unfinished_request_holds_the_checkpoint_until_its_time_is_over(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    start = sglang("received", "before", 0) + answer("before", 1)
    log.write_text(start + sglang("received", "slow", 2) + answer("quick", 3))
    station = Station(tmp_path, str(log), format="sglang", unfinished_ms=60_000)
    running = station.start()
    station.turns(4)
    assert position(tmp_path) == len(start)
    assert {one.request_id for one in station.sequences()} == {"before", "quick"}
    with log.open("a") as file:
        file.write(answer("later", 90))
    station.turns(4)
    assert position(tmp_path) == log.stat().st_size
    assert {one.request_id for one in station.sequences()} == {"before", "quick", "slow", "later"}
    assert running.look().logs[0].incomplete == {"response.never_finished": 1}
    station.crash()


def test_too_many_unfinished_requests_push_out_the_oldest(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("".join(sglang("received", f"r{n}", n) for n in range(10)))
    station = Station(tmp_path, str(log), format="sglang", unfinished_requests=4)
    station.start()
    station.turns(4)
    assert [one.request_id for one in station.sequences()] == [f"r{n}" for n in range(5)]
    station.crash()


def test_a_fifo_is_read_as_it_is_written(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    whole = write_jsonl(tmp_path / "whole.jsonl", pairs(PAIRS))
    station = Station(tmp_path, str(fifo))
    station.start()
    station.turns(1)
    content = whole.read_bytes()
    with fifo.open("wb", buffering=0) as writer:
        for at in range(0, len(content), 1000):
            writer.write(content[at : at + 1000])
            station.turns(1)
    station.turns(2)
    station.stop()
    assert set(station.told()) == station.expected(whole)


def test_a_pipe_is_emptied_while_nothing_more_can_be_held(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    station = Station(tmp_path, str(fifo), format="jsonl")
    running = station.start()
    station.turns(1)
    running.sidecar.sending.unsafe_bytes = 2**30
    line = b'{"request_id": "r", "ts": 1, "tenant": "acme", "prompt_ids": [1, 2]}\n'
    with fifo.open("wb", buffering=0) as writer:
        for _ in range(100):
            writer.write(line * 10)
            station.turns(1)
    assert running.sidecar.discarded_bytes == 1000 * len(line)
    assert running.look().discarded_bytes
    running.sidecar.sending.unsafe_bytes = 0
    station.crash()


def test_a_compressed_log_is_read_once(tmp_path: Path) -> None:
    whole = write_jsonl(tmp_path / "whole.jsonl", pairs(PAIRS))
    packed = tmp_path / "archive.jsonl.zst"
    packed.write_bytes(zstandard.compress(whole.read_bytes()))
    station = Station(tmp_path, str(tmp_path / "*.zst"))
    for _ in range(3):
        station.start()
        station.turns(3)
        station.crash()
    told = station.told()
    assert set(told) == station.expected(whole)
    assert set(told.values()) == {1}


def test_reading_may_start_at_the_end(tmp_path: Path) -> None:
    whole = write_jsonl(tmp_path / "whole.jsonl", pairs(PAIRS))
    lines = whole.read_bytes().splitlines(keepends=True)
    log = tmp_path / "server.log"
    log.write_bytes(b"".join(lines[:4]))
    station = Station(tmp_path, str(log), start_at="end")
    station.start()
    station.turns()
    with log.open("ab") as file:
        file.write(b"".join(lines[4:]))
    station.turns()
    station.stop()
    assert len({one.request_id for one in station.sequences()}) == len(lines) - 4


def test_a_restart_remembers_what_the_engine_said_when_it_started(tmp_path: Path) -> None:
    head = "(APIServer pid=1) INFO 11-29 18:00:{:02d} [request_logger.py:65] "
    log = tmp_path / "server.log"
    banner = head.format(0).replace("request_logger.py:65", "entrypoints/utils.py:299")
    log.write_text(f"{banner}vLLM API server version 0.32.0{' ' * 150}\n")
    station = Station(tmp_path, str(log), tenancy_rules=[{"kind": "static", "tenant": "acme"}])
    station.start()
    station.turns()
    station.crash()
    log.rename(tmp_path / "server.log.1")
    log.write_text(
        head.format(1).replace("INFO", "DEBUG")
        + "Request cmpl-a details: prompt: 'x', prompt_token_ids: [1, 2], prompt_embeds shape: "
        + "None.\n"
        + head.format(2)
        + "Received request cmpl-a: params: SamplingParams(n=1), lora_request: None.\n"
    )
    (tmp_path / "server.log.1").unlink()
    station.start()
    station.turns()
    # this version logs no output of completions, so nothing is waited for
    assert [one.request_id for one in station.sequences()] == ["cmpl-a"]
    station.crash()
