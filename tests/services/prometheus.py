"""A real Prometheus of the Debian package, on a free port, that scrapes and judges."""

import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.services.packages import program

PACKAGE: Final = "prometheus"

START_S: Final = 60.0
"""A busy machine takes seconds; one that takes this long has failed."""


@dataclass(frozen=True)
class Prometheus:
    """One that runs."""

    url: str
    pid: int

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an instant query: `metric` (its labels) and `value` (time, text)."""
        asked = urllib.parse.urlencode({"query": expression})
        found: list[dict[str, Any]] = self._get(f"query?{asked}")["result"]
        return found

    def alerts(self) -> list[dict[str, Any]]:
        """Return the pending and firing alerts."""
        found: list[dict[str, Any]] = self._get("alerts")["alerts"]
        return found

    def targets(self) -> list[dict[str, Any]]:
        """Return what is scraped, each with its `health`."""
        found: list[dict[str, Any]] = self._get("targets")["activeTargets"]
        return found

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.url}/api/v1/{path}", timeout=10) as answer:
            return json.loads(answer.read())["data"]


@contextmanager
def prometheus(
    folder: Path,
    *,
    targets: Mapping[str, Sequence[str]],
    rules: Sequence[Path] = (),
    alertmanager: str | None = None,
    every_s: float = 1.0,
) -> Iterator[Prometheus]:
    """Give a Prometheus that scrapes `targets` (job to host:port) and judges the files of rules.

    It tells the Alertmanager at that URL of alerts. Rules that name no interval are judged as often
    as it scrapes, every `every_s`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "prometheus.yml"
    config.write_text(json.dumps(_document(targets, rules, alertmanager, every_s)))
    port = _free_port()
    command = [
        program("prometheus", PACKAGE),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    log = (folder / "prometheus.log").open("wb")
    with log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            made = Prometheus(f"http://127.0.0.1:{port}", process.pid)
            _wait_until_ready(made.url, process, folder / "prometheus.log")
            yield made
        finally:
            process.kill()


def _document(
    targets: Mapping[str, Sequence[str]],
    rules: Sequence[Path],
    alertmanager: str | None,
    every_s: float,
) -> dict[str, Any]:
    every = f"{round(every_s * 1000)}ms"
    document: dict[str, Any] = {
        "global": {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
        "rule_files": [str(path) for path in rules],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": list(hosts)}]}
            for job, hosts in targets.items()
        ],
    }
    if alertmanager is not None:
        host = urllib.parse.urlsplit(alertmanager).netloc
        told = {"static_configs": [{"targets": [host]}]}
        document["alerting"] = {"alertmanagers": [told]}
    return document


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s:
        assert process.poll() is None, f"it ended: {log.read_text()[-500:]}"
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise AssertionError(f"it is not ready: {log.read_text()[-500:]}")


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
