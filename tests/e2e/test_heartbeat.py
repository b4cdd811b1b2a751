"""Heartbeats of a `run all`: they come through store and outputs, and nobody is shown one."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

from detector.sample.traffic import SampleRequest
from exporters.store import heartbeats
from exporters.store import incidents as incident_rows
from exporters.store.database import open_store
from exporters.store.settings import StoreSettings
from ingest.key_file import new_secret
from tests.e2e.program import PROGRAM, Capture, call, environment, run
from tests.e2e.test_listen import port_of
from tests.e2e.traffic import pairs, write_config, write_jsonl
from tests.streams.process import until

PAIRS = 3


def _now(request: SampleRequest) -> SampleRequest:
    """Return a request that was made in the last half minute."""
    shift = time.time() - 30
    times = {name: getattr(request, name) + shift for name in ("ts", "ts_first", "ts_end")}
    return replace(request, **times)


@contextmanager
def ended(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Kill a process behind a `with` block, whatever happens in there."""
    try:
        yield
    finally:
        process.kill()


def settings_of(folder: Path) -> tuple[str | Path, ...]:
    """Write what a process with heartbeats needs and return its flags."""
    new_secret(folder / "key")
    watch = {"kind": "stdout", "name": "watch", "path": str(folder / "beats"), "heartbeats": True}
    config = write_config(
        folder / "config.yaml",
        detection={"commonness": {"learning_ms": 0}},
        heartbeat={"every_ms": 1_000},
        store={"url": f"sqlite:///{folder}/store.db"},
        api={"port": 0},
        metrics={"port": 0},
        outputs=[watch],
    )
    return ("--config", config, "--key-file", folder / "key")


def test_one_that_follows_a_log_sends_them_until_they_are_switched_off(
    tmp_path: Path, capsys: Capture
) -> None:
    beats, url = tmp_path / "beats", f"sqlite:///{tmp_path}/store.db"
    more = settings_of(tmp_path)
    words = ("run", "all", "-", "--format", "jsonl", "--incidents", "-o", "jsonl", *more)
    with (
        subprocess.Popen(
            [*PROGRAM, *map(str, words)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        ) as monitor,
        ended(monitor),
    ):
        until(lambda: beats.exists() and beats.stat().st_size > 0)
        out, told = monitor.communicate(timeout=60)  # the input ends
    assert (out, b"Traceback" in told) == (b"", False), told.decode()
    with closing(open_store(StoreSettings(url=url))) as database:
        with database.read() as connection:
            assert len(heartbeats.latest(connection)) == 1
        log = write_jsonl(tmp_path / "log.jsonl", pairs(1))
        switched_off = ("--set", "heartbeat.every_ms=null", "--fail-on", "never")
        code, _, err = call(capsys, "run", "all", log, "--incidents", *more, *switched_off)
        assert code == 0, err
        with database.read() as connection:
            assert heartbeats.latest(connection) == {}


def test_a_process_that_listens_sends_them_through_itself(tmp_path: Path) -> None:
    url, beats = f"sqlite:///{tmp_path}/store.db", tmp_path / "beats"
    more = settings_of(tmp_path)
    words = ("run", "all", "--listen", "0", "--incidents", "-o", "jsonl")
    log = write_jsonl(tmp_path / "log.jsonl", [_now(one) for one in pairs(PAIRS)])
    with (
        subprocess.Popen(
            [*PROGRAM, *map(str, (*words, *more))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        ) as monitor,
        ended(monitor),
    ):
        port = port_of(monitor.stderr)
        until(lambda: beats.exists() and beats.stat().st_size > 0)
        there = f"http.url=http://127.0.0.1:{port}"
        sent = run(
            *("run", "sidecar", "-", "--format", "jsonl", *more, "--set", there),
            stdin=log.read_bytes(),
        )
        assert sent.returncode == 0, sent.stderr.decode()
        monitor.send_signal(signal.SIGTERM)
        out, _ = monitor.communicate(timeout=60)
    assert {json.loads(line)["type"] for line in beats.read_text().splitlines()} == {
        "monitor.heartbeat"
    }
    found = [json.loads(line) for line in out.splitlines()]
    assert {one["rule"] for one in found} == {"BW001"}
    with closing(open_store(StoreSettings(url=url))) as database, database.read() as connection:
        assert len(heartbeats.latest(connection)) == 1
        (incident,) = incident_rows.newest(connection, limit=9)
        assert incident.finding_count == PAIRS
        assert set(incident.tenants) == {"acme", "globex"}
