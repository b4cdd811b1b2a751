"""Findings in the store: one row for each id, the surest version of it."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Connection, Row, bindparam, insert, select, update

from detector.finding import Confidence, Finding, Severity
from exporters.incidents.grouping import Neighbour
from exporters.incidents.model import Observed, counts_alone
from exporters.store.tables import findings

_DECODER: Final = msgspec.json.Decoder(Finding)

_WITH_ID: Final = select(findings).where(findings.c.id == bindparam("wanted"))
_OF_INCIDENT: Final = (
    select(findings)
    .where(findings.c.incident_id == bindparam("wanted"))
    .order_by(findings.c.observed_from_ms, findings.c.id)
)
_INSERT: Final = insert(findings)
_UPDATE: Final = update(findings).where(findings.c.id == bindparam("wanted"))
_NEIGHBOURS: Final = select(
    findings.c.id, findings.c.incident_id, findings.c.severity, findings.c.confidence
).where(
    findings.c.sink_tenant == bindparam("tenant"),
    findings.c.sink_request == bindparam("request"),
    findings.c.id != bindparam("but"),
    findings.c.observed_from_ms <= bindparam("last_ms"),
    findings.c.observed_until_ms >= bindparam("first_ms"),
)


class StoredFinding(NamedTuple):
    """A finding, and the incident that it is part of."""

    observed: Observed
    incident_id: str | None


def finding(connection: Connection, finding_id: str) -> StoredFinding | None:
    """Return a finding by its id."""
    row = connection.execute(_WITH_ID, {"wanted": finding_id}).first()
    return None if row is None else _stored(row)


def findings_of(connection: Connection, incident_id: str) -> list[StoredFinding]:
    """Return the findings of an incident, the earliest first."""
    found = connection.execute(_OF_INCIDENT, {"wanted": incident_id})
    return [_stored(row) for row in found]


def rules_of(connection: Connection, incident_id: str) -> tuple[str, ...]:
    """Return the rules of an incident's findings, sorted."""
    chosen = select(findings.c.rule).where(findings.c.incident_id == incident_id).distinct()
    return tuple(sorted(connection.scalars(chosen)))


def put(connection: Connection, observed: Observed, incident_id: str | None) -> None:
    """Write a finding, new or not; verdicts on it stay."""
    values = _values(observed, incident_id)
    changed = connection.execute(_UPDATE, {**values, "wanted": observed.finding.id})
    if not changed.rowcount:
        connection.execute(_INSERT, values)


def move(connection: Connection, incident_ids: Sequence[str], to: str) -> None:
    """Make the findings of some incidents part of another."""
    connection.execute(
        update(findings).where(findings.c.incident_id.in_(incident_ids)).values(incident_id=to)
    )


def adopt(connection: Connection, finding_ids: Iterable[str], incident_id: str) -> list[Observed]:
    """Make findings that are part of no incident part of one, and return them."""
    wanted = list(finding_ids)
    if not wanted:
        return []
    chosen = findings.c.id.in_(wanted)
    connection.execute(update(findings).where(chosen).values(incident_id=incident_id))
    rows = connection.execute(select(findings).where(chosen).order_by(findings.c.id))
    return [_stored(row).observed for row in rows]


def neighbours(connection: Connection, observed: Observed, *, join_ms: int) -> list[Neighbour]:
    """Return the other findings about the same request within a time of it; none if it has none."""
    sink = observed.finding.sink
    if not sink.request_id:
        return []
    found = connection.execute(
        _NEIGHBOURS,
        {
            "tenant": sink.tenant,
            "request": sink.request_id,
            "but": observed.finding.id,
            "first_ms": observed.from_ms - join_ms,
            "last_ms": observed.until_ms + join_ms,
        },
    )
    return [
        Neighbour(row.id, row.incident_id, _counts(row.severity, row.confidence)) for row in found
    ]


def _counts(severity: str, confidence: str) -> bool:
    return counts_alone(Severity(severity), Confidence(confidence))


def _stored(row: Row[Any]) -> StoredFinding:
    observed = Observed(
        finding=_DECODER.decode(row.body),
        from_ms=row.observed_from_ms,
        until_ms=row.observed_until_ms,
    )
    return StoredFinding(observed, row.incident_id)


def _values(observed: Observed, incident_id: str | None) -> dict[str, str | int | None]:
    one = observed.finding
    return {
        "id": one.id,
        "rule": one.rule,
        "severity": one.severity.value,
        "confidence": one.confidence.value,
        "kv_pool": one.kv_pool,
        "engine": one.engine,
        "model": one.model,
        "observed_at_ms": one.observed_at_ms,
        "detected_at_ms": one.detected_at_ms,
        "observed_from_ms": observed.from_ms,
        "observed_until_ms": observed.until_ms,
        "sink_tenant": one.sink.tenant,
        "sink_request": one.sink.request_id,
        "source_tenant": one.source.tenant,
        "source_request": one.source.request_id,
        "incident_id": incident_id,
        "body": msgspec.json.encode(one).decode(),
    }
