"""`make kafka-up` and `make kafka-down`: a node that stays, told where to find it, and goes."""

import os
import subprocess
import sys
from pathlib import Path

from ingest.kafka_io import KafkaReader
from ingest.kafka_settings import KafkaSettings


def node(command: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tests.kafka", command, str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_it_starts_once_and_leaves_nothing_behind(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert node("down", run) == ""
    assert "Kafka serves 127.0.0.1:" in node("up", run)
    try:
        name, _, address = (run / "kafka.env").read_text().strip().partition("=")
        assert name == "BLEEDWATCH_KAFKA__BOOTSTRAP_SERVERS"
        KafkaReader(KafkaSettings(bootstrap_servers=address)).close()
        assert f"Kafka already serves {address}" in node("up", run)
    finally:
        ended = node("down", run)
    assert "has ended" in ended
    assert os.listdir(run) == []


def test_without_java_it_says_what_to_install(tmp_path: Path) -> None:
    environment = {"PATH": str(tmp_path), "PYTHONPATH": os.getcwd()}
    done = subprocess.run(
        [sys.executable, "-m", "tests.kafka", "up", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment,
    )
    assert done.returncode == 2
    assert "openjdk-17-jdk-headless" in done.stderr
    assert "Traceback" not in done.stderr
