"""Lists of findings, the last made first, by what people ask for; a page is a look at an index."""

from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, Select, and_, case, or_, select

from detector.finding import Confidence, Finding, Severity
from exporters.store.tables import findings
from exporters.store.verdicts import Verdict


class FindingFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What every finding of a list must be; None asks for nothing. Times are of detection.

    `tenant` is either side. `verdict` NONE asks for those that nobody has judged.
    """

    rule: str | None = None
    severity: Severity | None = None
    confidence: Confidence | None = None
    kv_pool: str | None = None
    tenant: str | None = None
    incident_id: str | None = None
    verdict: Verdict | None = None
    since_ms: int | None = None
    until_ms: int | None = None


class Place(NamedTuple):
    """Where a page ended: the last row's time and id."""

    at_ms: int
    id: str


class ListedFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A finding with what is known of it besides."""

    finding: Finding
    incident_id: str | None
    verdict: Verdict
    verdict_by: str | None = None
    verdict_at_ms: int | None = None


def list_findings(
    connection: Connection, wanted: FindingFilter, *, limit: int, after: Place | None = None
) -> list[ListedFinding]:
    """Return the findings that fit, the last detected first, from behind `after` on."""
    chosen = select(findings).where(*_conditions(wanted))
    if after is not None:
        chosen = chosen.where(_behind(after))
    if wanted.tenant is None:
        return [listed(row) for row in connection.execute(_first(chosen, limit))]
    # Each side by an index of its own: the two of them in one condition would be sorted as a whole.
    sides = (findings.c.sink_tenant, findings.c.source_tenant)
    found = {
        row.id: row
        for side in sides
        for row in connection.execute(_first(chosen.where(side == wanted.tenant), limit))
    }
    latest = sorted(found.values(), key=lambda row: (row.detected_at_ms, row.id), reverse=True)
    return [listed(row) for row in latest[:limit]]


def listed_finding(connection: Connection, finding_id: str) -> ListedFinding | None:
    """Return one finding by its id."""
    row = connection.execute(select(findings).where(findings.c.id == finding_id)).first()
    return None if row is None else listed(row)


def gravest_findings(
    connection: Connection, incident_id: str, *, limit: int
) -> list[ListedFinding]:
    """Return the findings of an incident, the gravest first, of equal ones the earliest."""
    rank = case({one.value: one.rank for one in Severity}, value=findings.c.severity)
    chosen = (
        select(findings)
        .where(findings.c.incident_id == incident_id)
        .order_by(rank.desc(), findings.c.observed_from_ms, findings.c.id)
        .limit(limit)
    )
    return [listed(row) for row in connection.execute(chosen)]


def listed(row: Row[Any]) -> ListedFinding:
    """Return what a row of the table says."""
    return ListedFinding(
        finding=_FINDING.decode(row.body),
        incident_id=row.incident_id,
        verdict=Verdict.NONE if row.verdict is None else Verdict(row.verdict),
        verdict_by=row.verdict_by,
        verdict_at_ms=row.verdict_at_ms,
    )


_FINDING = msgspec.json.Decoder(Finding)


def _first(chosen: Select[Any], limit: int) -> Select[Any]:
    return chosen.order_by(findings.c.detected_at_ms.desc(), findings.c.id.desc()).limit(limit)


def _behind(after: Place) -> ColumnElement[bool]:
    """What comes after a place; the first part is one that an index understands."""
    row = findings.c
    earlier = or_(row.detected_at_ms < after.at_ms, row.id < after.id)
    return and_(row.detected_at_ms <= after.at_ms, earlier)


def _conditions(wanted: FindingFilter) -> list[ColumnElement[bool]]:
    row = findings.c
    asked: list[tuple[Any, ColumnElement[Any]]] = [
        (wanted.rule, row.rule),
        (wanted.severity, row.severity),
        (wanted.confidence, row.confidence),
        (wanted.kv_pool, row.kv_pool),
        (wanted.incident_id, row.incident_id),
    ]
    conditions = [column == str(value) for value, column in asked if value is not None]
    if wanted.verdict is not None:
        unjudged = wanted.verdict is Verdict.NONE
        conditions.append(
            row.verdict.is_(None) if unjudged else row.verdict == wanted.verdict.value
        )
    if wanted.since_ms is not None:
        conditions.append(row.detected_at_ms >= wanted.since_ms)
    if wanted.until_ms is not None:
        conditions.append(row.detected_at_ms <= wanted.until_ms)
    return conditions
