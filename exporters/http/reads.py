"""What both programs and pages read of one incident."""

from collections import Counter
from typing import NamedTuple

from exporters.http.answers import BlastRadiusAnswer, IncidentDetail, TenantRequests
from exporters.http.parts import Parts
from exporters.http.problems import no_such
from exporters.incidents.grouping import Span
from exporters.store import blast_radius, incidents
from exporters.store.blast_radius import Scope
from exporters.store.finding_list import gravest_findings
from exporters.store.incident_list import is_held
from exporters.store.look_backs import look_backs_of

SHOWN = 100
"""Findings of an incident that come with it."""

BEFORE_MS = 300_000
"""How long before its first finding a blast radius begins: the window of detection."""


class Asked(NamedTuple):
    """How a blast radius differs from that of the incident's own span of time."""

    since_ms: int | None = None
    until_ms: int | None = None
    longer_than: int | None = None
    engine: str | None = None
    contradicted: bool = False


def whole_incident(parts: Parts, incident_id: str) -> IncidentDetail:
    """Return an incident with what is around it; raises ProblemError if there is none."""
    with parts.database.read() as connection:
        found = incidents.incident(connection, incident_id)
        if found is None:
            raise no_such("incident")
        findings = gravest_findings(connection, incident_id, limit=SHOWN)
        return IncidentDetail(
            incident=found,
            is_held=is_held(connection, incident_id),
            changes=incidents.changes_of(connection, incident_id),
            findings=findings,
            look_backs=look_backs_of(connection, [one.finding.id for one in findings]),
        )


def radius(parts: Parts, incident_id: str, asked: Asked) -> BlastRadiusAnswer:
    """Count by tenant; raises ProblemError if there is no such incident."""
    counted: Counter[str] = Counter()
    with parts.database.read() as connection:
        if incidents.incident(connection, incident_id) is None:
            raise no_such("incident")
        scopes = _scopes(incidents.spans_of(connection, incident_id), asked)
        for scope in scopes:
            counted.update(blast_radius.blast_radius(connection, scope).tenants)
    in_order = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    return BlastRadiusAnswer(
        incident_id=incident_id,
        scopes=scopes,
        requests=counted.total(),
        tenants=[TenantRequests(tenant, count) for tenant, count in in_order],
    )


def _scopes(spans: list[Span], asked: Asked) -> list[Scope]:
    """Return one scope for each pool, from before the first finding there to the last."""
    of_pool: dict[str, list[Span]] = {}
    for span in spans:
        of_pool.setdefault(span.kv_pool, []).append(span)
    return [
        Scope(
            kv_pool=kv_pool,
            from_ms=_or(asked.since_ms, min(span.from_ms for span in mine) - BEFORE_MS),
            until_ms=_or(asked.until_ms, max(span.until_ms for span in mine)),
            longer_than=asked.longer_than,
            contradicted=asked.contradicted,
            engine=asked.engine,
        )
        for kv_pool, mine in of_pool.items()
    ]


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
