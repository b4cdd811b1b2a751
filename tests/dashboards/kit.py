"""What the boards and rules ask, one expression at a time, as the committed files say it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from dashboards.build import BOARDS, HERE

Json = dict[str, Any]

RULES: Final = (HERE / "rules" / "recording.yaml", HERE / "rules" / "alerts.yaml")


INTERVAL: Final = "10s"
"""What Grafana would put in for an interval: some scrapes."""


class Asked(NamedTuple):
    """One query of one panel."""

    board: str
    panel: str
    legend: str
    expr: str


def board(name: str) -> Json:
    """Return a board as it is committed."""
    read: Json = json.loads((HERE / "json" / f"{name}.json").read_text(encoding="utf-8"))
    return read


def panels(name: str) -> list[Json]:
    """Return the panels of a board without its rows."""
    return [panel for panel in board(name)["panels"] if panel["type"] != "row"]


def asked() -> Iterator[Asked]:
    """Yield every query of every board."""
    for name in BOARDS:
        for panel in panels(name):
            for target in panel["targets"]:
                yield Asked(name, panel["title"], target["legendFormat"], target["expr"])


def filled(expr: str) -> str:
    """Return an expression with Grafana's variables put in: every engine is selected."""
    return expr.replace("$__rate_interval", INTERVAL).replace("$engine", ".*")


def rules(path: Path) -> list[Json]:
    """Return the rules of a file, recording or alerting."""
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return [rule for group in document["groups"] for rule in group["rules"]]
