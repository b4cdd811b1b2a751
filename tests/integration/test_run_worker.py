"""`bleedwatch run worker` as an operator runs it: findings, health, a clean stop, clear errors."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from ingest.broker import Message
from ingest.key_file import new_secret
from tests.e2e.program import environment, run
from tests.streams.cluster import now_ms
from tests.streams.health import status
from tests.streams.process import until
from tests.streams.real import STEP_MS, Cluster, bleeding, make_cluster

COUNT = 60

COMPILED_S = 240.0
"""A first start after a change of the kernels compiles them, on a machine that may be busy."""


@pytest.fixture
def cluster(kafka: str, topic_prefix: str, tmp_path: Path) -> Cluster:
    key_file = tmp_path / "key"
    new_secret(key_file)
    return make_cluster(kafka, topic_prefix, key_file)


def start(cluster: Cluster, log: Path) -> "subprocess.Popen[bytes]":
    with log.open("wb") as file:
        return subprocess.Popen(cluster.command, stderr=file, env=environment())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_it_finds_says_that_it_is_well_and_stops(
    cluster: Cluster, tmp_path: Path, number: signal.Signals
) -> None:
    start_ms = now_ms() - 2 * COUNT * STEP_MS
    cluster.send(cluster.packed(bleeding(1, COUNT, start_ms)))
    log = tmp_path / "log"
    with start(cluster, log) as process:
        try:
            until(lambda: len(cluster.findings()) == COUNT, COMPILED_S)
            found = re.search(r"health on port (\d+)", log.read_text())
            assert found
            until(lambda: status(int(found[1]), "/readyz") == 200)
            assert status(int(found[1]), "/livez") == 200
            process.send_signal(number)
            assert process.wait(60) == 0
        finally:
            process.kill()
    assert "Traceback" not in log.read_text()
    assert set(cluster.findings().values()) == {1}


def test_input_that_is_all_bad_ends_it_loudly(cluster: Cluster, tmp_path: Path) -> None:
    topic = f"{cluster.settings.topic_prefix}.sequences"
    cluster.send([Message(topic, b"\xff canary", partition=0)] * 300)
    log = tmp_path / "log"
    with start(cluster, log) as process:
        try:
            assert process.wait(COMPILED_S) == 70
        finally:
            process.kill()
    assert topic in log.read_text()
    assert "canary" not in log.read_text()


def test_what_is_missing_is_told_before_anything_is_read(cluster: Cluster) -> None:
    other = [*cluster.arguments, "--set", "kafka.topic_prefix=nobody"]
    done = run("run", "worker", *other)
    assert done.returncode == 2
    assert b"there is no such topic" in done.stderr
    assert b"topics create" in done.stderr
    nowhere = [
        "--set",
        "kafka.bootstrap_servers=127.0.0.1:1",
        "--set",
        "kafka.connect_timeout_ms=1s",
    ]
    done = run("run", "worker", *cluster.arguments, *nowhere)
    assert done.returncode == 2
    assert b"kafka.bootstrap_servers" in done.stderr
    done = run("run", "worker", "--set", "metrics.port=0")
    assert done.returncode == 2
    assert b"bleedwatch key new" in done.stderr
