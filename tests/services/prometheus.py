"""A real Prometheus of the Debian package, on a free port, that scrapes what it is told.

It evaluates files of rules and tells an Alertmanager, if there is one.
"""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.services.http_service import HttpService, http_service
from tests.services.packages import program
from tests.services.ports import free_port

PACKAGE: Final = "prometheus"

START_S: Final = 60.0
"""A busy machine takes seconds; one that takes this long has failed."""

EVERY: Final = "500ms"
"""How often it scrapes and evaluates: a test lasts for seconds."""

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Series:
    """One series of an answer; points are pairs of Unix time and value, without NaN."""

    labels: Labels
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Prometheus:
    """One that runs. After `service.kill()` it can be started again, with its samples."""

    url: str
    service: HttpService

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return what an expression has as of now, as Prometheus writes it."""
        found: list[dict[str, Any]] = self._asked("query", query=expression)["result"]
        return found

    def range(
        self, expr: str, *, start_s: float, end_s: float, step_s: float = 1.0
    ) -> list[Series]:
        """Return the series of an expression over a time that have a value at all."""
        found = self._asked(
            "query_range", query=expr, start=f"{start_s}", end=f"{end_s}", step=f"{step_s}"
        )["result"]
        every = [
            Series(
                {name: word for name, word in one["metric"].items() if name != "__name__"},
                tuple((at, float(value)) for at, value in one["values"] if value != "NaN"),
            )
            for one in found
        ]
        return [one for one in every if one.points]

    def firing(self) -> list[dict[str, Any]]:
        """Return the alerts that fire, as Prometheus writes them."""
        return [one for one in self._asked("alerts")["alerts"] if one["state"] == "firing"]

    def _asked(self, what: str, **given: str) -> dict[str, Any]:
        query = urllib.parse.urlencode(given)
        with urllib.request.urlopen(f"{self.url}/api/v1/{what}?{query}", timeout=30) as answer:
            data: dict[str, Any] = json.load(answer)["data"]
        return data


@contextmanager
def prometheus(
    folder: Path,
    *,
    targets: Mapping[str, Sequence[str]],
    rules: Sequence[Path] = (),
    alertmanager: str | None = None,
) -> Iterator[Prometheus]:
    """Give a Prometheus that scrapes host:port of each job; its files lie in `folder`."""
    folder.mkdir(exist_ok=True)
    config: dict[str, Any] = {
        "global": {"scrape_interval": EVERY, "evaluation_interval": EVERY, "scrape_timeout": EVERY},
        "rule_files": [str(path) for path in rules],
        "scrape_configs": [
            {"job_name": name, "static_configs": [{"targets": list(each)}]}
            for name, each in targets.items()
        ],
    }
    if alertmanager is not None:
        place = urllib.parse.urlsplit(alertmanager).netloc
        config["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [place]}]}]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    port = free_port()
    command = [
        program("prometheus", PACKAGE),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    url = f"http://127.0.0.1:{port}"
    with http_service(command, folder / "prometheus.log", ready=f"{url}/-/ready") as service:
        yield Prometheus(url, service)
