"""Boards and rules ask for metrics and labels that are exported, and every metric is on a board."""

import re
from collections.abc import Iterator

import pytest

from dashboards.alerts import ALERTS, RECORDING, Alert
from dashboards.build import BOARDS
from exporters.api_metrics import API
from exporters.engine_metrics import ENGINES
from exporters.metrics import BATCH_SECONDS, BUILD, WORKER
from exporters.sidecar_metrics import SIDECAR
from exporters.tap_metrics import TAP
from tests.dashboards.kit import RULES, asked, panels, rules

NAME = re.compile(r"\b(bleedwatch_\w+|process_\w+)\b(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\b(?:by|on|group_left) \(([^)]*)\)")

BY_PROMETHEUS = {"instance", "le"}
"""Labels that scraping and histograms add."""

BY_US = {"part"}
"""Labels that an expression makes itself."""

EXPORTED: dict[str, tuple[str, ...]] = {
    **{one.name: one.labels for one in WORKER},
    **{one.name: one.labels for one in ENGINES},
    **{one.name: one.labels for one in API},
    **{one.name: one.labels for one in SIDECAR},
    **{one.name: one.labels for one in TAP},
    f"{BATCH_SECONDS.name}_bucket": (),
    f"{BUILD}_info": ("version", "python"),
    "process_resident_memory_bytes": (),
    "process_cpu_seconds_total": (),
}


def expressions() -> Iterator[str]:
    yield from (one.expr for one in asked())
    yield from (rule["expr"] for path in RULES for rule in rules(path))
    yield from (alert.value for alert in ALERTS)


@pytest.mark.parametrize("expr", sorted(set(expressions())))
def test_every_metric_and_label_is_exported(expr: str) -> None:
    labels: set[str] = set()
    for name, selector in NAME.findall(expr):
        assert name in EXPORTED
        assert set(re.findall(r"(\w+)[!=]", selector)) <= set(EXPORTED[name])
        labels |= set(EXPORTED[name])
    grouped = {word for found in GROUPED.findall(expr) for word in found.split(", ") if word}
    recorded = set(re.findall(r"bleedwatch:[\w:]+", expr))
    assert grouped <= labels | BY_PROMETHEUS
    assert recorded <= RECORDING.keys()
    assert recorded or NAME.search(expr)


def test_every_metric_is_on_a_board() -> None:
    shown = " ".join([*(one.expr for one in asked()), *RECORDING.values()])
    assert EXPORTED.keys() - {name for name, _ in NAME.findall(shown)} == set()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_what_alerts_is_on_a_board(alert: Alert) -> None:
    names = {name for name, _ in NAME.findall(alert.value)}
    shown = " ".join(one.expr for one in asked())
    assert all(name in shown for name in names)


def test_labels_in_texts_are_those_of_the_alert() -> None:
    for alert in ALERTS:
        used = set(re.findall(r"\$labels\.(\w+)", alert.summary + alert.description))
        kept = {word for found in GROUPED.findall(alert.value) for word in found.split(", ")}
        assert used <= kept | (BY_US if "label_replace" in alert.value else set()), alert.name


@pytest.mark.parametrize("name", BOARDS)
def test_red_begins_where_an_alert_of_the_same_runbook_fires(name: str) -> None:
    fires = {(alert.runbook, float(alert.fires.split()[1])) for alert in ALERTS}
    for panel in panels(name):
        red = [
            step["value"]
            for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
            if step["color"] == "red"
        ]
        for value in red:
            (link,) = panel["links"]
            book = link["url"].rpartition("/")[2]
            # Above zero, which counts begin at, is one.
            assert (book, value) in fires or (value == 1 and (book, 0) in fires), panel["title"]
