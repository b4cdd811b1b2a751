"""Lists of incidents, the last made first, by what people ask for."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, and_, exists, or_, select

from detector.finding import Severity
from exporters.incidents.model import Incident, State
from exporters.store.incidents import read_incident
from exporters.store.tables import findings, holds, incidents


class IncidentFilter(msgspec.Struct, frozen=True, kw_only=True):
    """What every incident of a list must be; None and nothing ask for nothing."""

    states: Sequence[State] = ()
    severity: Severity | None = None
    kv_pool: str | None = None
    rule: str | None = None
    tenant: str | None = None


class IncidentPlace(NamedTuple):
    """Where a page ended: when its last incident was made, and its id."""

    created_at_ms: int
    id: str


def list_incidents(
    connection: Connection,
    wanted: IncidentFilter,
    *,
    limit: int,
    after: IncidentPlace | None = None,
) -> list[Incident]:
    """Return the incidents that fit, the last made first, from behind `after` on."""
    chosen = select(incidents).where(*_conditions(wanted))
    if after is not None:
        row = incidents.c
        earlier = or_(row.created_at_ms < after.created_at_ms, row.id < after.id)
        chosen = chosen.where(and_(row.created_at_ms <= after.created_at_ms, earlier))
    if not wanted.states:
        return [read_incident(row) for row in connection.execute(_latest(chosen, limit))]
    # Each state by its index: several of them in one condition would be sorted as a whole.
    found = [
        row
        for state in set(wanted.states)
        for row in connection.execute(
            _latest(chosen.where(incidents.c.state == state.value), limit)
        )
    ]
    found.sort(key=lambda row: (row.created_at_ms, row.id), reverse=True)
    return [read_incident(row) for row in found[:limit]]


def is_held(connection: Connection, incident_id: str) -> bool:
    """True if retention and erasure leave an incident alone."""
    held = select(holds.c.incident_id).where(holds.c.incident_id == incident_id).limit(1)
    return connection.execute(held).first() is not None


def pools_with_incidents(connection: Connection, *, limit: int) -> list[str]:
    """Return the names of pools that incidents are of, for people to choose from."""
    names = select(incidents.c.kv_pool).distinct().order_by(incidents.c.kv_pool).limit(limit)
    return list(connection.scalars(names))


def _latest(chosen: Select[Any], limit: int) -> Select[Any]:
    return chosen.order_by(incidents.c.created_at_ms.desc(), incidents.c.id.desc()).limit(limit)


def _conditions(wanted: IncidentFilter) -> list[ColumnElement[bool]]:
    row = incidents.c
    conditions: list[ColumnElement[bool]] = []
    if wanted.severity is not None:
        conditions.append(row.severity == wanted.severity.value)
    if wanted.kv_pool is not None:
        conditions.append(row.kv_pool == wanted.kv_pool)
    if wanted.rule is not None:
        conditions.append(_has(findings.c.rule, wanted.rule))
    if wanted.tenant is not None:
        sides = (findings.c.sink_tenant, findings.c.source_tenant)
        conditions.append(or_(*(_has(side, wanted.tenant) for side in sides)))
    return conditions


def _has(column: ColumnElement[Any], value: str) -> ColumnElement[bool]:
    return exists().where(findings.c.incident_id == incidents.c.id, column == value)
