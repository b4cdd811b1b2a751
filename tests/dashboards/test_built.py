"""What is committed is what the constants make, and it keeps the rules of Grafana's linter."""

import json
from pathlib import Path
from typing import Any

import pytest

from dashboards.alerts import ALERTS
from dashboards.build import BOARDS, files
from detector.rules.catalog import RULES
from detector.rules.runbook import runbooks

MADE = files()


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.name)
def test_the_committed_file_is_the_generated_one(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == MADE[path], "run `make dashboards`"


def test_nothing_else_lies_beside_the_generated_files() -> None:
    folders = {path.parent for path in MADE}
    assert {path for folder in folders for path in folder.iterdir()} == MADE.keys()


def _board(name: str) -> dict[str, Any]:
    path = next(path for path in MADE if path.name == f"{name}.json")
    board: dict[str, Any] = json.loads(MADE[path])
    return board


def _panels(name: str) -> list[dict[str, Any]]:
    return [panel for panel in _board(name)["panels"] if panel["type"] != "row"]


@pytest.mark.parametrize("name", BOARDS)
def test_every_panel_says_what_it_is(name: str) -> None:
    for panel in _panels(name):
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert all(target["expr"] for target in panel["targets"])


@pytest.mark.parametrize("name", BOARDS)
def test_rates_follow_the_interval_of_the_board(name: str) -> None:
    for panel in _panels(name):
        for target in panel["targets"]:
            if "rate(" in target["expr"]:
                assert "[$__rate_interval]" in target["expr"] or not target["range"]


@pytest.mark.parametrize("name", BOARDS)
def test_panels_fill_the_grid_without_overlap(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in _board(name)["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


@pytest.mark.parametrize("name", BOARDS)
def test_links_lead_to_runbooks_that_exist(name: str) -> None:
    for panel in _panels(name):
        for link in panel["links"]:
            assert link["url"].removeprefix("${triage}/runbooks/") in runbooks()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_every_alert_has_a_runbook(alert: Any) -> None:
    assert alert.runbook in runbooks()
    assert alert.summary
    assert alert.description.endswith(".")


def test_every_rule_has_a_runbook() -> None:
    assert RULES.keys() <= runbooks().keys()
