"""Who was told of an incident hears of its end, though one of its tenants was erased meanwhile."""

from sqlalchemy import select

from detector.finding import Finding
from exporters.outputs.notification import Kind, Notification
from exporters.outputs.settings import StdoutSettings
from exporters.sending.announce import announce
from exporters.store import outbox, tables
from exporters.store.database import Database
from exporters.store.erasure import ERASED, erase_tenant
from exporters.store.recording import acknowledge, record_findings, resolve_quiet
from tests.store.made import SETTINGS, found

DESK = StdoutSettings(kind="stdout", name="desk")
ENDED_MS = 10**6


def record(database: Database, *findings: Finding) -> None:
    with database.write() as connection:
        changes = record_findings(connection, findings, SETTINGS, now_ms=1_000).changes
        announce(connection, changes, outputs=[DESK])


def deliver(database: Database) -> list[Notification]:
    """Deliver all that waits, and return it."""
    told: list[Notification] = []
    while True:
        with database.write() as connection:
            due = outbox.first_due(connection, "desk", now_ms=ENDED_MS)
            if due is None:
                return told
            outbox.delivered(connection, due)
            told.append(due.notification)


def erase(database: Database) -> None:
    with database.write() as connection:
        erase_tenant(connection, "acme")


def kept(database: Database) -> str:
    """Return all bodies that the outbox holds."""
    with database.read() as connection:
        return "\n".join(connection.scalars(select(tables.outbox.c.body)))


def test_who_was_told_hears_of_the_end(database: Database) -> None:
    record(database, found("f1", 0, explanation="It names acme."), found("f2", 1, source="other"))
    assert [one.kind for one in deliver(database)] == [Kind.OPENED]
    erase(database)
    assert "acme" not in kept(database)
    with database.write() as connection:
        changes = resolve_quiet(connection, SETTINGS, now_ms=ENDED_MS)
        announce(connection, changes, outputs=[DESK])
        assert outbox.was_told(connection, "desk", "inc-f1")
    (end,) = deliver(database)
    assert (end.kind, end.tenants, end.finding_count) == (Kind.RESOLVED, ("globex", "other"), 1)


def test_what_waits_is_told_without_the_tenant(database: Database) -> None:
    record(database, found("f1", 0, rule="BW002"), found("f2", 1, source="other"))
    with database.write() as connection:
        change = acknowledge(connection, "inc-f1", by="walt", reason="I call acme", now_ms=2_000)
        assert change is not None
        announce(connection, [change], outputs=[DESK])
    erase(database)
    opened, *_, seen = deliver(database)
    assert (opened.kind, opened.tenants) == (Kind.OPENED, ("globex", "other"))
    assert (opened.rules, opened.title) == (("BW001",), "Finding f2 of BW001.")
    assert (seen.kind, seen.reason) == (Kind.ACKNOWLEDGED, ERASED)


def test_an_incident_of_nobody_else_goes_with_what_was_told_of_it(database: Database) -> None:
    record(database, found("f1", 0))
    deliver(database)
    erase(database)
    assert kept(database) == ""
