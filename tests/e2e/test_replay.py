"""`bleedwatch replay` as a process: exit codes, streams, packed files, forms, pipes and signals."""

import gzip
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import yaml
import zstandard

from tests.e2e.program import PROGRAM, Capture, call, environment, replayed, run
from tests.e2e.traffic import WRITERS, pairs, row, write_config, write_jsonl

PAIRS = 5


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "log.jsonl", pairs(PAIRS))


@pytest.fixture
def sure(tmp_path: Path) -> Path:
    """Return a configuration under which nothing is capped for lack of history."""
    return write_config(tmp_path / "sure.yaml", detection={"commonness": {"learning_ms": 0}})


def test_exit_code_follows_the_severity_floor(log: Path, sure: Path, capsys: Capture) -> None:
    done = run("replay", log, "--config", sure)
    assert (done.returncode, done.stdout[:8]) == (1, b"SEVERITY")
    for floor, code in (("high", 1), ("info", 1), ("critical", 0), ("never", 0)):
        ended = call(capsys, "replay", log, "--config", sure, "--fail-on", floor)
        assert (ended[0], ended[1][:8]) == (code, "SEVERITY")
    code, _, told = call(capsys, "replay", log)
    assert code == 0
    assert "learning" in told


def test_nothing_found_exits_0_with_empty_stdout(tmp_path: Path) -> None:
    asks = write_jsonl(tmp_path / "asks.jsonl", pairs(PAIRS)[::2])
    done = run("replay", asks)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"no findings in 5 requests" in done.stderr


@pytest.mark.parametrize("lacking", ["response_ids", "tenant"])
def test_nothing_judged_exits_2_whatever_the_floor(
    tmp_path: Path, capsys: Capture, lacking: str
) -> None:
    rows = [row(one) for one in pairs(PAIRS)]
    for one in rows:
        del one[lacking]
    log = tmp_path / "log.jsonl"
    log.write_text("".join(f"{json.dumps(one)}\n" for one in rows))
    code, out, told = call(capsys, "replay", log, "--fail-on", "never")
    assert (code, out) == (2, "")
    summary, cause, *_, error, hint = told.splitlines()
    assert summary.startswith("no findings in 10 requests")
    assert cause.startswith("not judged: 10 re")
    assert error.startswith("error: nothing was judged: 10 requests were read, none with")
    assert hint.startswith("  next: the lines above")


@pytest.mark.parametrize("form", WRITERS)
def test_every_format_from_a_file_and_from_stdin(tmp_path: Path, sure: Path, form: str) -> None:
    path = WRITERS[form](tmp_path / f"server.{form}.log", pairs(PAIRS))
    for arguments, stdin in (((path,), b""), (("-",), path.read_bytes())):
        done = run("replay", *arguments, "--config", sure, "-o", "jsonl", stdin=stdin)
        findings = [json.loads(line) for line in done.stdout.splitlines()]
        assert done.returncode == 1
        assert [one["source"]["tenant"] for one in findings] == ["acme"] * PAIRS


def test_packed_files_whatever_their_names(log: Path, sure: Path, capsys: Capture) -> None:
    packed = zstandard.compress(log.read_bytes())
    for name, data in (
        ("log.jsonl.zst", packed),
        ("log.jsonl.gz", gzip.compress(log.read_bytes())),
        ("log.txt", gzip.compress(log.read_bytes())),
    ):
        path = log.parent / name
        path.write_bytes(data)
        assert len(replayed(capsys, sure, path)["findings"]) == PAIRS
    done = run("replay", "-", "--config", sure, "-o", "json", stdin=packed)
    assert len(json.loads(done.stdout)["findings"]) == PAIRS


def test_machine_forms_hold_the_same(log: Path, sure: Path, capsys: Capture) -> None:
    key = log.parent / "key"
    assert call(capsys, "key", "new", key)[0] == 0
    outputs = {
        form: call(capsys, "replay", log, "--config", sure, "--key-file", key, "-o", form)[1]
        for form in ("json", "jsonl", "yaml")
    }
    document = json.loads(outputs["json"])
    assert document["requests"] == 2 * PAIRS
    assert document["coverage"]["requests"] == 2 * PAIRS
    assert not document["learning"]
    listed = yaml.safe_load(outputs["yaml"])
    lines = [json.loads(line) for line in outputs["jsonl"].splitlines()]
    stable = [one["id"] for one in document["findings"]]
    assert len(set(stable)) == PAIRS
    assert [one["id"] for one in listed["findings"]] == stable
    assert [one["id"] for one in lines] == stable


def test_a_saved_finding_can_be_explained(log: Path, sure: Path) -> None:
    saved = log.parent / "findings.jsonl"
    run("replay", log, "--config", sure, "--save", saved)
    assert saved.stat().st_mode & 0o777 == 0o600
    name = json.loads(saved.read_text().splitlines()[0])["id"]
    for identifier, source, stdin in (
        (name, saved, b""),
        (name[:8], "-", saved.read_bytes()),
    ):
        done = run("explain", identifier, "--from", source, stdin=stdin)
        assert done.returncode == 0
        for words in (b"What was subtracted, and why", b"What decided", b"tenant acme"):
            assert words in done.stdout
    assert run("explain", "000000000000", "--from", saved).returncode == 2


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path, sure: Path) -> None:
    path = write_jsonl(tmp_path / "many.jsonl", pairs(150))
    never = ("--fail-on", "never")
    for form in ("jsonl", "table"):
        process = subprocess.Popen(
            [*PROGRAM, "replay", str(path), "--config", str(sure), "-o", form, *never],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        told = process.stderr.read()
        process.stderr.close()
        assert process.wait(timeout=60) == 0
        assert b"150 findings (150 high) in 300 requests" in told
        assert b"Traceback" not in told
        assert b"Exception ignored" not in told


def test_an_interrupt_exits_130(log: Path, sure: Path) -> None:
    """The program has opened the FIFO, read a whole log from it and waits for more."""
    fifo = log.parent / "fifo"
    os.mkfifo(fifo)
    process = subprocess.Popen(
        [*PROGRAM, "replay", str(fifo), "--config", str(sure), "--save", str(log.parent / "never")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    with fifo.open("wb") as writing:
        writing.write(log.read_bytes())
        writing.flush()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, told = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in told
    assert {path.name for path in log.parent.iterdir()} == {"log.jsonl", "sure.yaml", "fifo"}
