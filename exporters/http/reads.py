"""What both programs and pages read of one incident."""

from collections import Counter
from http import HTTPStatus

from exporters.http.answers import BlastRadiusAnswer, IncidentDetail, RadiusScope, TenantRequests
from exporters.http.parts import Parts
from exporters.http.problems import ProblemError, no_such
from exporters.store import blast_radius, incidents
from exporters.store.blast_radius import Asked, scopes_of
from exporters.store.finding_list import gravest_findings
from exporters.store.incident_list import is_held
from exporters.store.look_backs import look_backs_of

SHOWN = 100
"""Findings of an incident that come with it."""


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
    """Count by tenant; raises ProblemError for no such incident, or a time that holds nothing."""
    counted: Counter[str] = Counter()
    with parts.database.read() as connection:
        if incidents.incident(connection, incident_id) is None:
            raise no_such("incident")
        scopes = scopes_of(incidents.spans_of(connection, incident_id), asked)
        if any(scope.from_ms > scope.until_ms for scope in scopes):
            detail = "the time asked for ends before it begins"
            raise ProblemError(HTTPStatus.BAD_REQUEST, "span", detail)
        for scope in scopes:
            counted.update(blast_radius.blast_radius(connection, scope).tenants)
    in_order = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    return BlastRadiusAnswer(
        incident_id=incident_id,
        scopes=[RadiusScope(one.kv_pool, one.from_ms, one.until_ms) for one in scopes],
        requests=counted.total(),
        tenants=[TenantRequests(tenant, count) for tenant, count in in_order],
    )
