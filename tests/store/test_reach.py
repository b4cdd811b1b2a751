"""An incident that reaches further, by tenants, pools or confidence, has changed and says how."""

from detector.finding import Confidence, Finding
from exporters.incidents.model import Change, ChangeKind, State
from exporters.store.database import Database
from exporters.store.recording import record_findings
from tests.store.made import SETTINGS, found

UNSURE = Confidence.MEDIUM


def changes(database: Database, *findings: Finding) -> tuple[Change, ...]:
    with database.write() as connection:
        return record_findings(connection, findings, SETTINGS, now_ms=1_000_000).changes


def reasons(database: Database, *findings: Finding) -> list[str]:
    found_all = changes(database, *findings)
    assert {change.kind for change in found_all} <= {ChangeKind.ONGOING}
    return [change.reason for change in found_all]


def test_further_tenants_and_pools_are_counted_and_not_named(database: Database) -> None:
    changes(database, found("f1", 1, request="r"), found("f2", 2))
    both = found("f3", 3, sink="initech", source="umbrella")
    assert reasons(database, both) == ["2 further tenants"]
    assert reasons(database, found("f4", 4, pool="b", request="r")) == ["1 further KV pool"]
    assert reasons(database, found("f5", 5, sink="initech", pool="b")) == []


def test_a_confidence_that_rises_is_a_change_of_what_stays_open(database: Database) -> None:
    changes(database, found("f1", 1, confidence=UNSURE))
    (change,) = changes(database, found("f1", 1))
    assert (change.kind, change.incident.state) == (ChangeKind.ONGOING, State.OPEN)
    assert change.reason == "confidence from medium to high"


def test_what_grows_stands_behind_what_happened(database: Database) -> None:
    changes(database, found("f1", 1))
    said = reasons(database, found("f2", 2, sink="initech"))
    assert said == ["a further finding, of BW001; 1 further tenant"]
