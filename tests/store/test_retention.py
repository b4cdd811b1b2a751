"""What is old is forgotten, what is held or active stays, and nothing else goes with it."""

import pytest
from sqlalchemy import func, select

from detector.finding import Severity
from exporters.incidents.model import State
from exporters.store import findings as finding_rows
from exporters.store import incidents as incident_rows
from exporters.store import retention
from exporters.store.database import Database
from exporters.store.erasure import erase_tenant
from exporters.store.recording import record_findings, resolve_quiet
from exporters.store.request_rows import StoredRequest, put_requests
from exporters.store.settings import StoreRetentionSettings
from exporters.store.tables import metadata, request_rows
from tests.store.made import SETTINGS, found

KEEP = StoreRetentionSettings(requests_ms=10_000, incidents_ms=50_000)


def rows(database: Database, table: str) -> int:
    with database.read() as connection:
        chosen = select(func.count()).select_from(metadata.tables[table])
        return connection.execute(chosen).scalar_one()


def forget(database: Database, now_ms: int) -> int:
    with database.write() as connection:
        return retention.forget(connection, KEEP, now_ms=now_ms)


def put_rows(database: Database, *at_s: int, pool: str = "a") -> None:
    with database.write() as connection:
        put_requests(
            connection,
            [
                StoredRequest(
                    tenant="acme",
                    request_id=f"r{at}",
                    kv_pool=pool,
                    engine="e",
                    model="m",
                    started_at_ms=at * 1000,
                )
                for at in at_s
            ],
        )


def record(database: Database, *, now_ms: int) -> None:
    with database.write() as connection:
        record_findings(
            connection,
            [found("f1", 0), found("f2", 1), found("weak", 1, severity=Severity.INFO)],
            SETTINGS,
            now_ms=now_ms,
        )


def test_rows_of_requests_go_when_they_are_old(database: Database) -> None:
    put_rows(database, 0, 5, 6, 20)
    assert forget(database, 15_001) == 2
    with database.read() as connection:
        kept = connection.scalars(select(request_rows.c.request_id)).all()
    assert sorted(kept) == ["r20", "r6"]
    assert forget(database, 15_001) == 0


def test_a_turn_removes_a_bounded_number(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "ROWS_PER_TURN", 3)
    put_rows(database, *range(5))
    assert [forget(database, 60_000) for _ in range(3)] == [3, 2, 0]


def test_resolved_incidents_go_with_all_about_them(database: Database) -> None:
    record(database, now_ms=0)
    assert forget(database, 10**6) == 1, "the weak finding; the incident is active"
    with database.write() as connection:
        (change,) = resolve_quiet(connection, SETTINGS, now_ms=10**6)
    assert change.incident.state is State.RESOLVED
    assert forget(database, 50_000) == 0
    assert forget(database, 50_001) == 1
    for table in ("incidents", "findings", "incident_changes", "incident_spans"):
        assert rows(database, table) == 0


def test_a_hold_keeps_an_incident_and_its_requests(database: Database) -> None:
    record(database, now_ms=0)
    put_rows(database, 0, 1, 3, 4)
    put_rows(database, 2, pool="b")
    with database.write() as connection:
        resolve_quiet(connection, SETTINGS, now_ms=20_000)
        retention.hold(connection, "inc-f1", margin_ms=2_000)
    while forget(database, 10**6):
        pass
    with database.read() as connection:
        kept = connection.scalars(select(request_rows.c.request_id)).all()
        assert sorted(kept) == ["r0", "r1", "r3"]
        assert len(finding_rows.findings_of(connection, "inc-f1")) == 2
    with database.write() as connection:
        retention.release(connection, "inc-f1")
    while forget(database, 10**6):
        pass
    assert rows(database, "request_rows") == rows(database, "incidents") == 0
    with database.read() as connection:
        assert incident_rows.newest(connection, limit=1) == []


def merge_held(database: Database) -> None:
    """Hold `inc-g1`, then make it part of `inc-f1`."""
    for at_s, name in ((0, "f1"), (150, "g1"), (80, "between")):
        with database.write() as connection:
            record_findings(connection, [found(name, at_s)], SETTINGS, now_ms=at_s)
            if name == "g1":
                retention.hold(connection, "inc-g1", margin_ms=2_000)
    with database.write() as connection:
        resolve_quiet(connection, SETTINGS, now_ms=10**6)


def test_a_hold_outlives_a_merge(database: Database) -> None:
    put_rows(database, 100, 149)
    merge_held(database)
    while forget(database, 10**9):
        pass
    with database.read() as connection:
        assert len(finding_rows.findings_of(connection, "inc-f1")) == 3
        assert connection.scalars(select(request_rows.c.request_id)).all() == ["r149"]
    with database.write() as connection:
        erased = erase_tenant(connection, "acme")
    assert (erased.findings, erased.held_findings, rows(database, "incidents")) == (0, 3, 2)


def test_what_has_become_part_of_it_is_released_with_an_incident(database: Database) -> None:
    merge_held(database)
    with database.write() as connection:
        retention.release(connection, "inc-f1")
    while forget(database, 10**9):
        pass
    assert rows(database, "holds") == rows(database, "incidents") == 0
