"""Erases what the store holds of one tenant; what an incident under a hold needs stays, counted.

Rows of requests, and findings that name the tenant, go. Incidents are told anew from the findings
that are left, and so is what outputs were or will be told of them: whoever knows of an incident
must hear of its end. One without any finding goes, with all about it. What was sent, and backups,
are not here.
"""

from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, and_, delete, func, or_, select, update

from detector.finding import Finding
from exporters.incidents.model import MAX_TENANTS, Incident, State
from exporters.outputs.notification import Notification
from exporters.store import incidents as incident_rows
from exporters.store.findings import findings_of
from exporters.store.retention import is_held_row
from exporters.store.silences import let_go
from exporters.store.tables import (
    findings,
    holds,
    incident_changes,
    incident_spans,
    incidents,
    look_backs,
    outbox,
    request_rows,
    silences,
)

ERASED: Final = "the reason was erased"
"""Stands where a reason named the tenant."""

_FINDING: Final = msgspec.json.Decoder(Finding)
_NOTIFICATION: Final = msgspec.json.Decoder(Notification)


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """How many rows are gone, and how many a hold has kept."""

    requests: int
    findings: int
    incidents: int
    held_requests: int
    held_findings: int


def erase_tenant(connection: Connection, tenant: str) -> Erasure:
    """Erase a tenant; needs a writing transaction. Repeating it finds only what is held."""
    mine = request_rows.c.tenant == tenant
    names = or_(findings.c.sink_tenant == tenant, findings.c.source_tenant == tenant)
    free = and_(names, ~_is_held())
    chosen = select(findings.c.incident_id).where(free, findings.c.incident_id.is_not(None))
    touched = sorted(connection.scalars(chosen.distinct()))
    requests = connection.execute(delete(request_rows).where(mine, ~is_held_row())).rowcount
    removed = connection.execute(delete(findings).where(free)).rowcount
    _forget_mentions(connection, tenant)
    gone = sum(_retold(connection, incident_id, tenant) for incident_id in touched)
    _forget_merged(connection, tenant)
    return Erasure(
        requests=requests,
        findings=removed,
        incidents=gone,
        held_requests=_count(connection, mine),
        held_findings=_count(connection, names),
    )


def _is_held() -> ColumnElement[bool]:
    return func.coalesce(findings.c.incident_id, "").in_(select(holds.c.incident_id))


def _count(connection: Connection, condition: ColumnElement[bool]) -> int:
    return connection.execute(select(func.count()).where(condition)).scalar_one()


def _mentions(column: ColumnElement[Any], tenant: str) -> ColumnElement[bool]:
    """Return a condition for JSON that may hold the name as a whole string; letters' case aside."""
    return column.contains(msgspec.json.encode(tenant).decode(), autoescape=True)


def _forget_mentions(connection: Connection, tenant: str) -> None:
    """Take the tenant out of other tenants' findings, what looked back for them, and silences."""
    rows = connection.execute(
        select(findings.c.id, findings.c.body).where(
            _mentions(findings.c.body, tenant), ~_is_held()
        )
    ).all()
    for row in rows:
        one = _FINDING.decode(row.body)
        others = tuple(party for party in one.other_sources if party.tenant != tenant)
        body = msgspec.json.encode(msgspec.structs.replace(one, other_sources=others)).decode()
        connection.execute(update(findings).where(findings.c.id == row.id).values(body=body))
    connection.execute(delete(look_backs).where(_mentions(look_backs.c.body, tenant)))
    if connection.execute(delete(silences).where(_mentions(silences.c.matchers, tenant))).rowcount:
        let_go(connection)


def _forget_merged(connection: Connection, tenant: str) -> None:
    """Remove what became part of other incidents and still names the tenant, unless it is held."""
    merged = select(incidents.c.id).where(
        incidents.c.state == State.MERGED.value,
        _mentions(incidents.c.tenants, tenant),
        incidents.c.id.not_in(select(holds.c.incident_id)),
    )
    for incident_id in connection.scalars(merged).all():
        _remove(connection, incident_id)


def _retold(connection: Connection, incident_id: str, tenant: str) -> bool:
    """Tell an incident anew from what is left of it; True if that is nothing and it is gone."""
    left = [one.observed for one in findings_of(connection, incident_id)]
    before = incident_rows.incident(connection, incident_id)
    if before is None:
        return False
    if not left:
        _remove(connection, incident_id)
        return True
    tenants = {name for one in left for name in one.tenants}
    after: Incident = msgspec.structs.replace(
        before,
        lead=min((one.lead for one in left), key=lambda lead: lead.order),
        finding_count=len(left),
        kv_pools=tuple(sorted({one.finding.kv_pool for one in left})),
        rules=tuple(sorted({one.finding.rule for one in left})),
        tenants=tuple(sorted(tenants))[:MAX_TENANTS],
    )
    incident_rows.put(connection, after)
    _reword_told(connection, after, tenant)
    return False


def _reword_told(connection: Connection, incident: Incident, tenant: str) -> None:
    """Make the bodies of an incident's notifications anew; who is told, and when, stays."""
    mine = outbox.c.incident_id == incident.id
    for row in connection.execute(select(outbox.c.id, outbox.c.body).where(mine)).all():
        one = _NOTIFICATION.decode(row.body)
        anew = msgspec.structs.replace(
            one,
            severity=incident.severity,
            confidence=incident.confidence,
            rules=incident.rules,
            kv_pools=incident.kv_pools,
            tenants=incident.tenants,
            finding_count=incident.finding_count,
            title=incident.title,
            reason=ERASED if tenant in one.reason else one.reason,  # people write reasons, too
        )
        body = msgspec.json.encode(anew).decode()
        connection.execute(update(outbox).where(outbox.c.id == row.id).values(body=body))


def _remove(connection: Connection, incident_id: str) -> None:
    connection.execute(delete(outbox).where(outbox.c.incident_id == incident_id))
    for table in (incident_changes, incident_spans, holds):
        connection.execute(delete(table).where(table.c.incident_id == incident_id))
    connection.execute(delete(incidents).where(incidents.c.id == incident_id))
