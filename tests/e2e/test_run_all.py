"""`bleedwatch run all`: what a replay finds, by way of the stream; live input; orderly stops."""

import io
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from detector.config.load import load_settings
from detector.demo import date_logs
from detector.finding import Finding
from detector.sample.scenario import Scenario, demo_scenario
from detector.service import replay
from detector.streaming.run_all import Input, run
from ingest.schema_records import RequestRow
from ingest.stream_settings import StreamSettings
from tests.e2e.program import PROGRAM, Capture, call, environment
from tests.e2e.traffic import pairs, row, write_config, write_jsonl

PAIRS = 5
SURE = {"commonness": {"learning_ms": 0}}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    scenario = demo_scenario(7, tmp_path_factory.mktemp("logs"))
    date_logs(scenario)
    return scenario


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "log.jsonl", pairs(PAIRS))


@pytest.fixture
def sure(tmp_path: Path) -> Path:
    return write_config(tmp_path / "sure.yaml", detection=SURE)


def plain(findings: list[Finding]) -> dict[str, object]:
    """Return everything that a finding says except when it was made."""
    return {one.id: (one.confidence, one.severity, one.evidence, one.source) for one in findings}


@pytest.mark.parametrize("partitions", [1, 8])
def test_the_stream_finds_what_a_replay_finds(
    made: Scenario, tmp_path: Path, partitions: int
) -> None:
    """Several engines, two formats; also with the engines in partitions of their own."""
    config = tmp_path / "config.json"
    rules = {"rules": list(made.tenant_rules)}
    config.write_text(json.dumps({"tenancy": rules, "detection": SURE}))
    chosen = [f"kafka.partitions={partitions}"]
    settings = load_settings(str(config), assignments=chosen, environment={}).settings
    paths = [str(log.path) for log in made.logs]
    wanted = replay(paths, settings)
    told: list[Finding] = []
    got = run(Input(paths=paths), settings, on_finding=told.append)
    assert len(wanted.findings) > 30
    assert plain(got.findings) == plain(wanted.findings)
    assert plain(told) == plain(got.findings)
    assert (got.requests, got.responses, got.tokens) == (
        wanted.requests, wanted.responses, wanted.tokens
    )  # fmt: skip
    assert got.explained == wanted.explained


def test_the_command_tells_what_replay_tells(log: Path, sure: Path, capsys: Capture) -> None:
    options = ("--config", sure, "-o", "json")
    code, out, _ = call(capsys, "run", "all", log, *options)
    wanted_code, wanted, _ = call(capsys, "replay", log, *options)
    assert code == wanted_code == 1
    ours, theirs = json.loads(out), json.loads(wanted)
    assert [one["id"] for one in ours["findings"]] == [one["id"] for one in theirs["findings"]]
    assert ours["coverage"] == theirs["coverage"]


def test_history_is_learned_and_what_is_no_history_is_told(
    tmp_path: Path, sure: Path, capsys: Capture
) -> None:
    requests = pairs(PAIRS)
    log = write_jsonl(tmp_path / "log.jsonl", requests)
    code, _, told = call(capsys, "run", "all", log, "--history", log, "--config", sure)
    assert code == 1
    assert "not learned: 20 prompts and responses" in told


@pytest.mark.parametrize("live", [False, True])
def test_every_request_has_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sure: Path, *, live: bool
) -> None:
    """Also those whose log holds no token ids, and those that have no answer when it ends."""
    with_ids = [row(one) for one in pairs(3)]
    unanswered = with_ids.pop() | {"response_ids": None}
    without_ids = row(pairs(4)[-1]) | {"prompt_ids": None, "response_ids": None}
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f"{json.dumps(one)}\n" for one in (*with_ids, without_ids, unanswered)))
    settings = load_settings(str(sure), environment={}).settings
    rows: list[RequestRow] = []
    with log.open("rb") as lines:
        if live:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(lines))
        path = "-" if live else str(log)
        report = run(Input(paths=[path], log_format="jsonl"), settings, on_row=rows.append)
    assert report.requests == len(rows) == 7
    flags = {one.request_id: one.flags for one in rows}
    assert flags.pop(str(without_ids["request_id"])) == ("ids_not_logged",)
    assert flags.pop(str(unanswered["request_id"])) == ("response_unseen",)
    assert flags == {str(one["request_id"]): () for one in with_ids}


def test_nothing_judged_exits_2(tmp_path: Path, sure: Path, capsys: Capture) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    code, out, told = call(
        capsys, "run", "all", empty, "--format", "jsonl", "--config", sure, "--fail-on", "never"
    )
    assert (code, out) == (2, "")
    assert "nothing was judged" in told


@pytest.fixture
def live(sure: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Yield a process that follows its standard input and tells findings as JSON lines."""
    words = ("run", "all", "-", "--format", "jsonl", "--config", str(sure), "-o", "jsonl")
    with subprocess.Popen(
        [*PROGRAM, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(),
    ) as process:  # fmt: skip
        yield process
        process.kill()


def say(process: "subprocess.Popen[bytes]", number: int) -> None:
    """Write one pair of requests, the second of which holds a bleed."""
    assert process.stdin is not None
    for request in pairs(number + 1)[-2:]:
        process.stdin.write(json.dumps(row(request)).encode() + b"\n")
    process.stdin.flush()


def hear(process: "subprocess.Popen[bytes]") -> dict[str, object]:
    assert process.stdout is not None
    return dict(json.loads(process.stdout.readline()))


def test_findings_come_while_the_input_is_still_open(live: "subprocess.Popen[bytes]") -> None:
    say(live, 0)
    assert hear(live)["confidence"] == "high"
    began = time.monotonic()
    say(live, 1)
    assert hear(live)["confidence"] == "high"
    assert time.monotonic() - began < 5
    out, told = live.communicate(timeout=60)
    assert live.returncode == 1
    assert out == b""
    assert b"2 findings (2 high) in 4 requests" in told


def test_one_request_of_the_future_changes_nothing(live: "subprocess.Popen[bytes]") -> None:
    now_s = time.time() - 60
    asks, bled, *more = [row(one) for one in pairs(2)]
    stray = asks | {"request_id": "of-the-future", "ts": asks["ts"] + 1e7, "ts_end": None}

    def write(*requests: dict[str, Any]) -> None:
        assert live.stdin is not None
        for one in requests:
            moved = {name: one[name] + now_s for name in ("ts", "ts_end") if one[name] is not None}
            live.stdin.write(json.dumps(one | moved).encode() + b"\n")
        live.stdin.flush()

    write(asks, bled)
    assert hear(live)["confidence"] == "high"
    write(stray)
    time.sleep(3 * StreamSettings().idle_ms / 1000)  # now nothing is left that speaks against it
    write(*more)
    assert float(str(hear(live)["detected_at_ms"])) / 1000 < time.time() + 60


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_in_order_though_the_input_is_open(
    live: "subprocess.Popen[bytes]", number: int, code: int
) -> None:
    say(live, 0)
    first = hear(live)
    say(live, 1)
    os.kill(live.pid, number)
    assert live.stdout is not None
    assert live.stderr is not None
    told = live.stderr.read()
    assert live.wait(timeout=60) == code
    assert b"Traceback" not in told
    assert b"Fatal" not in told
    assert first["id"]
    assert b"(1 high)" in told or b"(2 high)" in told
