"""Every query of every board and rule returns data of a running installation, and alerts fire."""

from collections.abc import Iterator

import pytest

from dashboards.alerts import ALERTS, RECORDING
from dashboards.build import TRIAGE
from tests.dashboards.kit import asked
from tests.dashboards.scene import FIRES, Seen, played

QUIET = {"sidecars: Refused records: {{reason}}"}
"""Readers refuse before what a packer would: the metric counts what should not happen."""


@pytest.fixture(scope="module")
def seen(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with played(tmp_path_factory.mktemp("scene"), kafka=kafka, prefix="boards") as scene:
        yield scene


def test_every_query_of_every_board_returns_data(seen: Seen) -> None:
    empty = [f"{one.board}: {one.panel}: {one.legend}" for one in asked() if not seen.ask(one.expr)]
    assert set(empty) == QUIET, "\n".join(empty)


def test_every_expression_of_a_rule_returns_data(seen: Seen) -> None:
    values = {**RECORDING, **{alert.name: alert.value for alert in ALERTS}}
    assert [name for name, expr in values.items() if not seen.ask(expr)] == []


def test_alerts_fire_and_say_what_they_mean(seen: Seen) -> None:
    told = {one["labels"]["alertname"]: one["annotations"] for one in seen.alerts}
    assert told.keys() >= FIRES
    assert "engine-0 holds KV memory" in told["BleedwatchUnreleasedMemory"]["summary"]
    for annotations in told.values():
        assert not [text for text in annotations.values() if "error expanding" in text]
        assert annotations["runbook_url"].startswith(TRIAGE)
