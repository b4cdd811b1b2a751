"""Without Kafka: a sidecar sends to `run all --listen`, which finds what a replay finds."""

import json
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from ingest.key_file import new_secret
from tests.e2e.program import PROGRAM, Capture, environment, replayed, run
from tests.e2e.traffic import pairs, write_config, write_jsonl

PAIRS = 4

SPOILED = 150
"""Pairs that nobody can open: more messages than end a process."""


@pytest.fixture
def key(tmp_path: Path) -> Path:
    new_secret(tmp_path / "key")
    return tmp_path / "key"


@pytest.fixture
def sure(tmp_path: Path) -> Path:
    return write_config(tmp_path / "sure.yaml", detection={"commonness": {"learning_ms": 0}})


@pytest.fixture
def monitor(sure: Path, key: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Yield a process that listens on a free port and tells findings as JSON lines."""
    words = ("run", "all", "--listen", "0", "--config", sure, "--key-file", key, "-o", "jsonl")
    with subprocess.Popen(
        [*PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(),
    ) as process:  # fmt: skip
        yield process
        process.kill()


def port_of(said: IO[bytes] | None) -> int:
    assert said is not None
    for line in said:
        if found := re.search(rb"on port (\d+)", line):
            return int(found[1])
    raise AssertionError("it never listened")


def test_a_sidecar_and_a_monitor_find_what_a_replay_finds(
    monitor: "subprocess.Popen[bytes]", tmp_path: Path, sure: Path, key: Path, capsys: Capture
) -> None:
    log = write_jsonl(tmp_path / "log.jsonl", pairs(PAIRS))
    port = port_of(monitor.stderr)
    sent = run(
        *("run", "sidecar", "-", "--format", "jsonl", "--config", sure, "--key-file", key),
        *("--set", f"http.url=http://127.0.0.1:{port}", "--set", "metrics.port=0"),
        stdin=log.read_bytes(),
    )
    assert sent.returncode == 0, sent.stderr.decode()
    assert b"all is acknowledged" in sent.stderr
    monitor.send_signal(signal.SIGTERM)
    out, told = monitor.communicate(timeout=60)
    assert b"Traceback" not in told
    assert monitor.returncode == 143
    found = {json.loads(line)["id"] for line in out.splitlines()}
    wanted = replayed(capsys, sure, log)
    assert len(found) == PAIRS
    assert found == {one["id"] for one in wanted["findings"]}


def test_a_sender_with_another_key_ends_it_but_not_what_was_found(
    sure: Path, key: Path, tmp_path: Path
) -> None:
    saved = tmp_path / "saved.jsonl"
    words = ("run", "all", "--listen", "0", "--config", sure, "--key-file", key, "--save", saved)
    new_secret(tmp_path / "other")
    few = write_jsonl(tmp_path / "few.jsonl", pairs(PAIRS))
    many = write_jsonl(tmp_path / "many.jsonl", pairs(SPOILED, seed=4))
    with subprocess.Popen(
        [*PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(),
    ) as monitor:  # fmt: skip
        port = port_of(monitor.stderr)
        for log, secret in ((few, key), (many, tmp_path / "other")):
            run(
                *("run", "sidecar", "-", "--format", "jsonl", "--config", sure),
                *("--key-file", secret, "--set", "packing.target_bytes=1KiB"),
                *("--set", f"http.url=http://127.0.0.1:{port}", "--set", "metrics.port=0"),
                stdin=log.read_bytes(),
            )
        _, told = monitor.communicate(timeout=60)
    assert monitor.returncode == 2
    assert b"unknown_key" in told
    assert b"Traceback" not in told
    rules = Counter(json.loads(line)["rule"] for line in saved.read_bytes().splitlines())
    assert rules == {"BW001": PAIRS, "BW901": 1}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "all"), b"nothing to read"),
        (("run", "all", "log", "--listen", "1"), b"takes no FILES"),
        (("run", "all", "--listen", "here"), b"needs [HOST:]PORT"),
        (("run", "all", "--listen", "0"), b"key new"),
        (("run", "all", "--listen", "0.0.0.0:0"), b"token_file must be set"),
    ],
)
def test_what_cannot_be_listened_to_is_told(words: tuple[str, ...], said: bytes) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert said in done.stderr
