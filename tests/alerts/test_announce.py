"""Who is told of which change: matchers, follow-ups, links, and never twice."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from detector.finding import Confidence, Severity
from exporters.incidents.model import ChangeKind
from exporters.outputs.notification import Kind, Notification
from exporters.outputs.settings import Matchers, StdoutSettings
from exporters.sending.announce import announce, notification_id
from exporters.sending.matching import wants
from exporters.store import outbox
from exporters.store.database import Database
from tests.alerts import kit
from tests.alerts.kit import NOW_MS, change, notification


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with kit.store(tmp_path) as opened:
        yield opened


def output(name: str, **when: Any) -> StdoutSettings:
    return StdoutSettings(kind="stdout", name=name, when=Matchers.model_validate(when))


def first(database: Database, name: str) -> Notification:
    with database.read() as connection:
        due = outbox.first_due(connection, name, now_ms=NOW_MS)
    assert due is not None
    return due.notification


@pytest.mark.parametrize(
    ("when", "told"),
    [
        ({}, True),
        ({"severity": Severity.HIGH}, True),
        ({"severity": Severity.CRITICAL}, False),
        ({"confidence": Confidence.HIGH}, True),
        ({"rules": ("BW00?",)}, True),
        ({"rules": ("BW1*", "BW2*")}, False),
        ({"tenants": ("globex",)}, True),
        ({"tenants": ("GLOBEX",)}, False),
        ({"kv_pools": ("pool-*",)}, True),
        ({"kv_pools": ("pool",)}, False),
        ({"kv_pools": ("pool-a",), "tenants": ("nobody",)}, False),
    ],
)
def test_every_line_of_the_matchers_must_match(when: dict[str, Any], told: bool) -> None:
    assert wants(Matchers.model_validate(when), notification()) is told


def test_a_confidence_that_is_lower_does_not_match() -> None:
    sure = Matchers(confidence=Confidence.HIGH)
    assert not wants(sure, notification(confidence=Confidence.MEDIUM))


def test_each_output_gets_a_notification_of_its_own(database: Database) -> None:
    outputs = [output("one"), output("two"), output("three", severity=Severity.CRITICAL)]
    with database.write() as connection:
        assert announce(connection, [change()], outputs=outputs) == 2
        assert set(outbox.counts(connection)) == {"one", "two"}
    assert first(database, "one").id != first(database, "two").id


def test_a_change_is_announced_once(database: Database) -> None:
    with database.write() as connection:
        assert announce(connection, [change()], outputs=[output("one")]) == 1
        assert announce(connection, [change()], outputs=[output("one")]) == 0


@pytest.mark.parametrize("kind", [ChangeKind.RESOLVED, ChangeKind.MERGED, ChangeKind.ACKNOWLEDGED])
def test_follow_ups_go_to_those_who_know_the_incident(database: Database, kind: ChangeKind) -> None:
    outputs = [output("knows"), output("does-not", severity=Severity.CRITICAL)]
    with database.write() as connection:
        announce(connection, [change()], outputs=outputs)
        assert announce(connection, [change(kind, version=2)], outputs=outputs) == 1


def test_a_further_finding_is_not_told_to_who_knows_the_incident(database: Database) -> None:
    with database.write() as connection:
        announce(connection, [change()], outputs=[output("one")])
        more = change(ChangeKind.ONGOING, version=2)
        assert announce(connection, [more], outputs=[output("one")]) == 0


@pytest.mark.parametrize("url", ["https://monitor.example", "https://monitor.example/"])
def test_the_link_leads_to_the_incident(database: Database, url: str) -> None:
    with database.write() as connection:
        announce(connection, [change()], outputs=[output("one")], external_url=url)
    told = first(database, "one")
    assert told.link == "https://monitor.example/incidents/inc-1"
    assert told.kind is Kind.OPENED


def test_ids_differ_by_output_incident_and_version() -> None:
    parts = [("a", "i", 1), ("b", "i", 1), ("a", "j", 1), ("a", "i", 2), ("a", "i1", 1)]
    assert len({notification_id(*one) for one in parts}) == len(parts)
    assert notification_id("a", "i", 1) == notification_id("a", "i", 1)
