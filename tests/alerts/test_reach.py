"""An output is told of an incident when it comes to match what the output asks for, once."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from detector.finding import Confidence, Finding, Severity
from exporters.outputs.notification import Kind
from exporters.outputs.settings import Matchers, StdoutSettings
from exporters.sending.announce import announce
from exporters.store.database import Database
from exporters.store.recording import record_findings
from exporters.store.tables import outbox
from tests.alerts import kit
from tests.store.made import SETTINGS, found

Told = list[tuple[Kind, str]]

SURE, UNSURE = Confidence.HIGH, Confidence.MEDIUM


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with kit.store(tmp_path) as opened:
        yield opened


def told(database: Database, when: dict[str, Any], *batches: Sequence[Finding]) -> Told:
    """Return what an output is told of batches of findings, each in a transaction of its own."""
    output = StdoutSettings(kind="stdout", name="desk", when=Matchers.model_validate(when))
    for number, batch in enumerate(batches):
        with database.write() as connection:
            recorded = record_findings(connection, batch, SETTINGS, now_ms=1_000 * number)
            announce(connection, recorded.changes, outputs=[output])
    in_order = select(outbox).order_by(outbox.c.created_at_ms, outbox.c.sequence)
    with database.read() as connection:
        return [(Kind(row.kind), row.incident_id) for row in connection.execute(in_order)]


@pytest.mark.parametrize(
    ("when", "later"),
    [
        ({"tenants": ("initech",)}, [found("f3", 3, sink="initech")]),
        ({"kv_pools": ("b",)}, [found("f3", 3, pool="b", request="r")]),
        ({"confidence": SURE}, [found("f1", 1, request="r", confidence=SURE)]),
        ({"confidence": SURE}, [found("f3", 3, confidence=SURE)]),
        ({"rules": ("BW101",)}, [found("f3", 3, confidence=UNSURE, rule="BW101")]),
        ({"severity": Severity.CRITICAL}, [found("f3", 3, severity=Severity.CRITICAL)]),
    ],
)
@pytest.mark.parametrize("several", [False, True])
def test_what_comes_to_match_is_opened_there(
    database: Database, when: dict[str, Any], later: list[Finding], several: bool
) -> None:
    first = [found("f1", 1, request="r", confidence=UNSURE)]
    second = [found("f2", 2, confidence=UNSURE)] if several else []
    assert told(database, when, first, second) == []
    assert told(database, when, [], [], later) == [(Kind.OPENED, "inc-f1")]


def test_who_knows_an_incident_is_not_told_that_it_reaches_further(database: Database) -> None:
    got = told(
        database,
        {},
        [found("f1", 1, request="r", confidence=UNSURE)],
        [found("f2", 2, confidence=SURE)],
        [found("f3", 3, sink="initech")],
        [found("f4", 4, pool="b", request="r")],
    )
    assert got == [(Kind.OPENED, "inc-f1")]


def test_who_knew_a_part_is_told_of_the_whole_and_then_of_its_end(database: Database) -> None:
    got = told(
        database,
        {"tenants": ("initech",)},
        [found("f1", 1)],
        [found("f2", 2)],
        [found("g1", 180, sink="initech")],
        [found("f3", 90)],
    )
    opened, *merged = got
    assert opened == (Kind.OPENED, "inc-g1")
    assert sorted(merged) == [(Kind.OPENED, "inc-f1"), (Kind.RESOLVED, "inc-g1")]


def test_who_knew_a_part_is_told_of_the_whole_though_it_is_less_sure(database: Database) -> None:
    got = told(
        database,
        {"confidence": SURE},
        [found("f1", 1, severity=Severity.CRITICAL, confidence=UNSURE)],
        [found("g1", 180, confidence=SURE)],
        [found("f3", 90)],
    )
    assert sorted(got) == [
        (Kind.OPENED, "inc-f1"),
        (Kind.OPENED, "inc-g1"),
        (Kind.RESOLVED, "inc-g1"),
    ]
