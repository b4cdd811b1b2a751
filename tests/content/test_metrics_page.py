"""docs/metrics.md lists exactly the metrics that the code exports, in its order and its words."""

import re

from exporters.api_metrics import API
from exporters.engine_metrics import ENGINES
from exporters.metrics import BATCH_SECONDS, BUILD, BUILD_HELP, WORKER
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")


def rows() -> list[str]:
    """Return the rows that the page must have."""
    listed: list[tuple[str, str, tuple[str, ...], str]] = [
        *((one.name, one.kind, one.labels, one.help) for one in WORKER),
        (BATCH_SECONDS.name, "histogram", (), BATCH_SECONDS.help),
        (f"{BUILD}_info", "gauge", ("version", "python"), BUILD_HELP),
        *((one.name, one.kind, one.labels, one.help) for one in ENGINES),
        *((one.name, one.kind, one.labels, one.help) for one in API),
    ]
    return [
        " | ".join((f"| `{name}`", kind, ", ".join(f"`{label}`" for label in labels), f"{text} |"))
        for name, kind, labels, text in listed
    ]


def test_every_metric_is_documented_and_none_that_does_not_exist() -> None:
    listed = re.findall(r"^\| `bleedwatch_.*$", PAGE, re.M)
    assert listed == [row.replace("|  |", "| |") for row in rows()]


def test_queries_use_metrics_that_exist() -> None:
    known = {name for name, *_ in (*WORKER, *ENGINES, *API)} | {BATCH_SECONDS.name, f"{BUILD}_info"}
    used = set(re.findall(r"\bbleedwatch_\w+", PAGE))
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in used} <= known
