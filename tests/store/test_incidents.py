"""Findings become incidents: what belongs together, how it lives, and why each change was made."""

from collections.abc import Sequence

import pytest

from detector.finding import Confidence, Finding, Severity
from exporters.incidents.model import Change, ChangeKind, Incident, State
from exporters.store import findings as finding_rows
from exporters.store import incidents as incident_rows
from exporters.store.database import Database
from exporters.store.recording import Recorded, acknowledge, record_findings, resolve_quiet
from tests.store.made import SETTINGS, about_engine, found

NOW_MS = 1_000_000


def record(database: Database, *findings: Finding, now_ms: int = NOW_MS) -> Recorded:
    with database.write() as connection:
        return record_findings(connection, findings, SETTINGS, now_ms=now_ms)


def resolve(database: Database, now_ms: int) -> Sequence[Change]:
    with database.write() as connection:
        return resolve_quiet(connection, SETTINGS, now_ms=now_ms)


def incidents(database: Database) -> list[Incident]:
    """Return those that are not part of others, the first made first."""
    with database.read() as connection:
        found_all = incident_rows.newest(connection, limit=100)
    return [one for one in reversed(found_all) if one.state is not State.MERGED]


def kinds(changes: Sequence[Change]) -> list[ChangeKind]:
    return [change.kind for change in changes]


def test_the_first_finding_opens_an_incident(database: Database) -> None:
    recorded = record(database, found("f1", 10))
    assert kinds(recorded.changes) == [ChangeKind.OPENED]
    (one,) = incidents(database)
    assert one == recorded.changes[0].incident
    assert one == Incident(
        id="inc-f1",
        state=State.OPEN,
        lead=one.lead,
        opened_at_ms=10_000,
        last_seen_ms=10_000,
        created_at_ms=NOW_MS,
        heard_at_ms=NOW_MS,
        finding_count=1,
        kv_pools=("a",),
        rules=("BW001",),
        tenants=("acme", "globex"),
        version=1,
    )
    assert (one.severity, one.confidence, one.kv_pool) == (Severity.HIGH, Confidence.HIGH, "a")
    assert one.title == "Finding f1 of BW001."


def test_findings_of_one_pool_and_time_are_one_incident(database: Database) -> None:
    recorded = record(database, found("f1", 0), found("f2", 100), found("f3", 200.001))
    assert kinds(recorded.changes) == [ChangeKind.OPENED, ChangeKind.ONGOING, ChangeKind.OPENED]
    first, second = incidents(database)
    assert (first.state, first.finding_count, first.last_seen_ms) == (State.ONGOING, 2, 100_000)
    assert (second.state, second.finding_count) == (State.OPEN, 1)


def test_another_pool_is_another_incident(database: Database) -> None:
    record(database, found("f1", 0), found("f2", 0, pool="b"))
    assert [one.kv_pool for one in incidents(database)] == ["a", "b"]


def test_findings_about_one_request_are_one_incident_in_whatever_pools(database: Database) -> None:
    content = found("f1", 0, request="r", pool="decode")
    contradiction = found("f2", 50, request="r", pool="prefill", rule="BW101")
    later = found("f3", 90, pool="prefill", rule="BW203")
    record(database, content, contradiction, later)
    (one,) = incidents(database)
    assert one.kv_pools == ("decode", "prefill")
    assert one.rules == ("BW001", "BW101", "BW203")
    assert one.finding_count == 3


def test_an_id_that_is_used_again_much_later_is_another_request(database: Database) -> None:
    record(database, found("f1", 0, request="r"), found("f2", 101, request="r", pool="b"))
    assert len(incidents(database)) == 2


def test_findings_about_engines_share_no_request(database: Database) -> None:
    record(database, about_engine("f1", 0), about_engine("f2", 0, pool="b"))
    first, second = incidents(database)
    assert first.tenants == second.tenants == ()


def test_a_finding_told_again_changes_nothing(database: Database) -> None:
    record(database, found("f1", 10))
    before = incidents(database)
    recorded = record(database, found("f1", 10), now_ms=NOW_MS + 5)
    assert recorded == Recorded((), new=0, updated=0, repeated=1)
    assert incidents(database) == before


def test_a_surer_version_counts_once_and_raises_the_severity(database: Database) -> None:
    record(database, found("f1", 10), found("f2", 11))
    recorded = record(database, found("f1", 10, severity=Severity.CRITICAL), now_ms=NOW_MS + 5)
    (change,) = recorded.changes
    assert change.kind is ChangeKind.SEVERITY_RAISED
    assert change.reason == "severity from high to critical by BW001"
    assert (change.incident.finding_count, change.incident.heard_at_ms) == (2, NOW_MS + 5)


def test_severity_is_never_lowered(database: Database) -> None:
    record(database, found("f1", 10, severity=Severity.CRITICAL))
    weaker = found("f1", 10, severity=Severity.MEDIUM, confidence=Confidence.LOW)
    assert record(database, weaker).changes == ()
    record(database, found("f2", 11))
    (one,) = incidents(database)
    assert one.severity is Severity.CRITICAL


def test_the_first_finding_of_another_rule_is_told(database: Database) -> None:
    record(database, found("f1", 10))
    (change,) = record(database, found("f2", 11, rule="BW101")).changes
    assert change.kind is ChangeKind.RULE_ADDED
    assert change.reason == "first finding of BW101; a further finding, of BW101"


def test_silence_resolves_and_news_open_again(database: Database) -> None:
    record(database, found("f1", 10))
    assert resolve(database, NOW_MS + 19_999) == ()
    (change,) = resolve(database, NOW_MS + 20_000)
    assert (change.kind, change.incident.state) == (ChangeKind.RESOLVED, State.RESOLVED)
    assert change.incident.resolved_at_ms == NOW_MS + 20_000
    assert resolve(database, NOW_MS + 50_000) == ()
    (change,) = record(database, found("f2", 60), now_ms=NOW_MS + 50_000).changes
    assert (change.kind, change.incident.state) == (ChangeKind.REOPENED, State.REOPENED)
    assert change.incident.resolved_at_ms is None
    assert change.reason == "news of BW001 after it was resolved"
    assert record(database, found("f3", 61), now_ms=NOW_MS + 50_001).changes == ()
    assert [one.state for one in incidents(database)] == [State.REOPENED]


def test_a_repeat_opens_nothing_again(database: Database) -> None:
    record(database, found("f1", 10))
    resolve(database, NOW_MS + 20_000)
    told_later = found("f1", 10, detected_at_ms=99_000)
    assert record(database, told_later, now_ms=NOW_MS + 30_000).changes == ()
    assert [one.state for one in incidents(database)] == [State.RESOLVED]


def test_a_finding_between_two_incidents_makes_them_one(database: Database) -> None:
    record(database, found("f1", 0))
    record(database, found("f3", 200), now_ms=NOW_MS + 1)
    recorded = record(database, found("f2", 100), now_ms=NOW_MS + 2)
    kept, other = recorded.changes
    assert (kept.kind, kept.incident.id) == (ChangeKind.ONGOING, "inc-f1")
    assert kept.reason == "a further finding, of BW001"
    assert (other.kind, other.incident.id) == (ChangeKind.MERGED, "inc-f3")
    assert (other.incident.merged_into, other.reason) == ("inc-f1", "part of inc-f1")
    (one,) = incidents(database)
    assert (one.finding_count, one.opened_at_ms, one.last_seen_ms) == (3, 0, 200_000)
    with database.read() as connection:
        of_it = finding_rows.findings_of(connection, "inc-f1")
        assert [each.observed.finding.id for each in of_it] == ["f1", "f2", "f3"]
        assert len(incident_rows.spans_of(connection, "inc-f1")) == 1


def test_what_is_weak_is_kept_but_makes_no_incident(database: Database) -> None:
    low = found("f1", 0, severity=Severity.INFO, confidence=Confidence.LOW)
    medium = found("f2", 0, severity=Severity.MEDIUM, confidence=Confidence.MEDIUM)
    assert record(database, low, medium).changes == ()
    assert incidents(database) == []
    with database.read() as connection:
        stored = finding_rows.finding(connection, "f2")
    assert stored is not None
    assert (stored.observed.finding, stored.incident_id) == (medium, None)


@pytest.mark.parametrize("weak_first", [True, False])
def test_what_is_weak_is_part_of_an_incident_about_its_request(
    database: Database, weak_first: bool
) -> None:
    weak = found("f1", 0, request="r", severity=Severity.INFO, confidence=Confidence.LOW)
    grave = found("f2", 10, request="r", rule="BW101")
    record(database, *((weak, grave) if weak_first else (grave, weak)))
    (one,) = incidents(database)
    assert (one.finding_count, one.rules, one.title) == (2, ("BW001", "BW101"), grave.explanation)
    assert one.opened_at_ms == 0


def test_evidence_makes_a_weak_finding_an_incident(database: Database) -> None:
    weak = found("f1", 0, severity=Severity.MEDIUM, confidence=Confidence.MEDIUM)
    record(database, weak)
    graver = found("f1", 0, severity=Severity.HIGH, confidence=Confidence.MEDIUM)
    recorded = record(database, graver)
    assert kinds(recorded.changes) == [ChangeKind.OPENED]
    assert recorded.updated == 1


def test_an_acknowledgement_lasts_until_it_gets_worse(database: Database) -> None:
    record(database, found("f1", 0))
    with database.write() as connection:
        change = acknowledge(connection, "inc-f1", by="ops", reason="looking", now_ms=NOW_MS + 1)
    assert change is not None
    assert (change.kind, change.by, change.reason) == (ChangeKind.ACKNOWLEDGED, "ops", "looking")
    assert change.incident.acknowledged_at_ms == NOW_MS + 1
    assert record(database, found("f2", 1)).changes[0].incident.acknowledged_by == "ops"
    (worse,) = record(database, found("f3", 2, severity=Severity.CRITICAL)).changes
    assert worse.incident.acknowledged_by is None
    assert worse.incident.acknowledged_at_ms is None
    assert worse.reason.endswith("so it needs to be acknowledged again")


def test_only_what_is_active_can_be_acknowledged(database: Database) -> None:
    record(database, found("f1", 0))
    resolve(database, NOW_MS + 20_000)
    with database.write() as connection:
        for incident_id in ("inc-f1", "inc-none"):
            words = {"by": "ops", "reason": "late"}
            assert acknowledge(connection, incident_id, **words, now_ms=NOW_MS) is None


def test_every_change_is_logged_with_its_reason(database: Database) -> None:
    record(database, found("f1", 0), found("f2", 1))
    resolve(database, NOW_MS + 20_000)
    record(database, found("f3", 2, rule="BW203"), now_ms=NOW_MS + 30_000)
    with database.read() as connection:
        log = incident_rows.changes_of(connection, "inc-f1")
    assert [(one.seq, one.kind, one.reason) for one in log] == [
        (1, ChangeKind.OPENED, "first finding, of BW001"),
        (2, ChangeKind.ONGOING, "a further finding, of BW001"),
        (3, ChangeKind.RESOLVED, "no news for 20 s"),
        (4, ChangeKind.REOPENED, "news of BW203 after it was resolved; first finding of BW203"),
    ]
