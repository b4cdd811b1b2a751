"""Lists of findings, the last made first, by what people ask for; a page is a look at an index."""

from functools import cache
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, case, or_, select

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


class FindingPlace(NamedTuple):
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
    connection: Connection, wanted: FindingFilter, *, limit: int, after: FindingPlace | None = None
) -> list[ListedFinding]:
    """Return the findings that fit, the last detected first, from behind `after` on."""
    asked: dict[str, Any] = {
        name: value for name, value in msgspec.structs.asdict(wanted).items() if value is not None
    }
    if wanted.verdict is Verdict.NONE:
        asked["unjudged"] = asked.pop("verdict")
    if after is not None:
        asked |= {"after": after.at_ms, "after_id": after.id}
    asked["most"] = limit
    if wanted.tenant is None:
        return [listed(row) for row in connection.execute(_statement(frozenset(asked)), asked)]
    # Each side by an index of its own: the two of them in one condition would be sorted as a whole.
    found = {
        row.id: row
        for side in ("sink_tenant", "source_tenant")
        for row in connection.execute(_statement(frozenset(asked), side), asked)
    }
    latest = sorted(found.values(), key=lambda row: (row.detected_at_ms, row.id), reverse=True)
    return [listed(row) for row in latest[:limit]]


def listed_finding(connection: Connection, finding_id: str) -> ListedFinding | None:
    """Return one finding by its id."""
    row = connection.execute(_BY_ID, {"wanted": finding_id}).first()
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


_BY_ID: Final = select(findings).where(findings.c.id == bindparam("wanted"))

_CONDITIONS: Final[dict[str, ColumnElement[bool]]] = {
    "rule": findings.c.rule == bindparam("rule"),
    "severity": findings.c.severity == bindparam("severity"),
    "confidence": findings.c.confidence == bindparam("confidence"),
    "kv_pool": findings.c.kv_pool == bindparam("kv_pool"),
    "incident_id": findings.c.incident_id == bindparam("incident_id"),
    "verdict": findings.c.verdict == bindparam("verdict"),
    "unjudged": findings.c.verdict.is_(None),
    "since_ms": findings.c.detected_at_ms >= bindparam("since_ms"),
    "until_ms": findings.c.detected_at_ms <= bindparam("until_ms"),
    # What comes behind a place; the first part is one that an index understands.
    "after": findings.c.detected_at_ms <= bindparam("after"),
    "after_id": or_(
        findings.c.detected_at_ms < bindparam("after"), findings.c.id < bindparam("after_id")
    ),
}


@cache
def _statement(asked: frozenset[str], side: str | None = None) -> Select[Any]:
    """Return the list of what is asked, made once: making it takes as long as the answer."""
    chosen = select(findings).where(*(_CONDITIONS[name] for name in asked & _CONDITIONS.keys()))
    if side is not None:
        chosen = chosen.where(findings.c[side] == bindparam("tenant"))
    latest = chosen.order_by(findings.c.detected_at_ms.desc(), findings.c.id.desc())
    return latest.limit(bindparam("most"))
