"""A heartbeat through everything: sidecar, Kafka, worker, api, and a receiver that misses it."""

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from exporters.store import heartbeats
from exporters.store import incidents as incident_rows
from exporters.store.database import open_store
from exporters.store.settings import StoreSettings
from ingest.key_file import new_secret
from tests.e2e.program import PROGRAM, environment
from tests.e2e.traffic import write_config
from tests.fakes.receiver import receiver
from tests.streams.process import until
from tests.streams.real import Cluster, make_cluster

SENT: Final = "bleedwatch_heartbeat_sent_timestamp_seconds"
ARRIVED: Final = "bleedwatch_heartbeat_arrived_timestamp_seconds"


class Program:
    """One `bleedwatch run PART`, and the port of its metrics."""

    def __init__(self, part: str, arguments: list[str], log: Path) -> None:
        self._log = log / part
        with self._log.open("wb") as errors:
            self.process = subprocess.Popen(
                [*PROGRAM, "run", part, *arguments],
                stdin=subprocess.PIPE, stderr=errors, stdout=errors, env=environment(),
            )  # fmt: skip

    def metrics(self) -> str:
        """Return what Prometheus would read; nothing before it listens."""
        port = re.search(r"health on port (\d+)", self._log.read_text())
        if port is None:
            assert self.process.poll() is None, self._log.read_text()
            return ""
        with urlopen(f"http://127.0.0.1:{port[1]}/metrics", timeout=5) as answer:
            page: str = answer.read().decode()
        return page

    def age_s(self, metric: str) -> float | None:
        """Return how long ago the time of a metric is, as the alert reckons."""
        found = re.search(rf'^{metric}\{{sender="engine-1"\}} (\S+)$', self.metrics(), re.MULTILINE)
        return None if found is None else time.time() - float(found[1])

    def stop(self) -> None:
        """End it in order."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(40)

    def close(self) -> None:
        """End it if it still runs, and what it was given."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()


@contextmanager
def installation(cluster: Cluster, folder: Path, url: str) -> Iterator[dict[str, Program]]:
    """Run a sidecar, a worker and an api that tells a receiver of heartbeats."""
    config = write_config(
        folder / "config.yaml",
        heartbeat={"every_ms": 1_000},
        sidecar={"engine": "engine-1", "format": "jsonl"},
        store={"url": f"sqlite:///{folder}/store.db"},
        api={"port": 0},
        outputs=[
            {"kind": "webhook", "name": "switch", "url": url, "allow_private": True,
             "heartbeats": True},
            {"kind": "stdout", "name": "people", "path": str(folder / "people")},
        ],
    )  # fmt: skip
    with_key = [*cluster.arguments, "--config", str(config)]
    parts = {"worker": with_key, "api": with_key[2:], "sidecar": ["-", *with_key]}
    with ExitStack() as running:
        programs = {}
        for part, arguments in parts.items():
            programs[part] = Program(part, arguments, folder)
            running.callback(programs[part].close)
        yield programs


def test_it_arrives_everywhere_and_its_absence_shows_outside_the_path(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    cluster = make_cluster(kafka, topic_prefix, tmp_path / "key")
    new_secret(tmp_path / "key")
    with receiver() as switch, installation(cluster, tmp_path, switch.url) as parts:
        api, sidecar = parts["api"], parts["sidecar"]
        until(lambda: api.age_s(ARRIVED) is not None)
        until(lambda: bool(switch.calls))
        parts["worker"].stop()  # the path is cut in the middle
        until(lambda: (api.age_s(ARRIVED) or 0) > 15)
        sent_s = sidecar.age_s(SENT)
        assert sent_s is not None
        assert sent_s < 5, "the sidecar goes on, and the metrics of both ends tell it"
        sidecar.stop()
        api.stop()
    told = [json.loads(call.body) for call in switch.calls]
    assert {one["type"] for one in told} == {"monitor.heartbeat"}
    assert len(told) <= 2, "once a minute"
    assert not (tmp_path / "people").exists() or not (tmp_path / "people").read_text()
    database = open_store(StoreSettings(url=f"sqlite:///{tmp_path}/store.db"))
    with database.read() as connection:
        assert list(heartbeats.latest(connection)) == ["engine-1"]
        assert not list(incident_rows.newest(connection, limit=5))
        assert connection.exec_driver_sql("SELECT count(*) FROM request_rows").scalar() == 0
        assert connection.exec_driver_sql("SELECT count(*) FROM findings").scalar() == 0
    database.close()
