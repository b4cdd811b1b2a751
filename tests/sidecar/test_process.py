"""A sidecar as an operator runs it: killed, stopped, slim, and with clear errors."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.program import environment, run
from tests.sidecar.kills import kill_and_count
from tests.sidecar.process import SidecarProcess, Site
from tests.sidecar.writer import LogWriter
from tests.streams.process import until

KILLS = 5
BANNED = ("torch", "numba", "llvmlite", "faust", "aiokafka", "scipy", "fastapi", "datasketch")


@pytest.mark.parametrize("log_format", ["sglang", "vllm"])
def test_whenever_it_is_killed_nothing_is_lost(
    kafka: str, topic_prefix: str, tmp_path: Path, log_format: str
) -> None:
    site = Site(tmp_path, kafka, topic_prefix, log_format=log_format)
    outcome = kill_and_count(site, kills=KILLS, seed=11, log_format=log_format)
    assert outcome.expected > 100
    assert (outcome.lost, outcome.strange) == (0, 0), outcome


def test_it_tells_how_it_is_and_ends_in_order(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    site = Site(tmp_path, kafka, topic_prefix, log_format="sglang")
    with LogWriter(site.log, log_format="sglang", seed=1, rotates=False) as writer:
        sidecar = SidecarProcess(site, tmp_path / "stderr")
        try:
            health = tmp_path / "health.json"
            until(lambda: health.exists() and json.loads(health.read_bytes())["tokens"] > 0)
            writer.end()
            assert sidecar.stop() == 0
        finally:
            sidecar.kill()
    assert json.loads(health.read_bytes())["ok"] is True
    assert "all is acknowledged" in (tmp_path / "stderr").read_text()
    assert site.told() == site.expected(writer.whole)


def test_a_running_sidecar_is_slim(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    site = Site(tmp_path, kafka, topic_prefix, log_format="sglang")
    program = (
        "import atexit, json, sys\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules))))\n"
        "from detector.cli.app import main\n"
        "main()\n"
    )
    config = ["--config", str(site.config), "--key-file", str(site.key)]
    done = subprocess.run(
        [sys.executable, "-c", program, "run", "sidecar", "-", *config],
        input=b'[2026-11-29 18:00:21] {"timestamp": "2026-11-29T18:00:21", "event": "x"}\n',
        capture_output=True,
        env=environment(),
        check=True,
        timeout=120,
    )
    loaded = set(json.loads(done.stdout))
    assert "ingest.sidecar" in loaded
    assert not loaded & set(BANNED)


def test_what_is_missing_is_told(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    site = Site(tmp_path, kafka, topic_prefix, log_format="sglang")
    done = run("run", "sidecar", "--config", site.config)
    assert done.returncode == 2
    assert b"sidecar.files" in done.stderr
    done = run("run", "sidecar", site.log, "--config", site.config)
    assert done.returncode == 2
    assert b"bleedwatch key new" in done.stderr
