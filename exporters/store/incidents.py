"""Incidents in the store: rows, their spans of event time, and the log of their changes."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Row, and_, bindparam, delete, func, insert, or_, select, update

from exporters.incidents.grouping import Span
from exporters.incidents.model import ACTIVE, Change, ChangeKind, Incident, Lead, Observed, State
from exporters.store.tables import incident_changes, incident_spans, incidents

_LEAD: Final = msgspec.json.Decoder(Lead)
_WORDS: Final = msgspec.json.Decoder(tuple[str, ...])

_INSERT: Final = insert(incidents)
_UPDATE: Final = update(incidents).where(incidents.c.id == bindparam("wanted"))
_LOG: Final = insert(incident_changes)
_SPANS_NEAR: Final = select(incident_spans).where(
    incident_spans.c.kv_pool == bindparam("pool"),
    incident_spans.c.from_ms <= bindparam("last_ms"),
    incident_spans.c.until_ms >= bindparam("first_ms"),
)
_NO_SPAN: Final = delete(incident_spans).where(
    incident_spans.c.kv_pool == bindparam("pool"), incident_spans.c.from_ms == bindparam("start_ms")
)
_NEW_SPAN: Final = insert(incident_spans)


class LoggedChange(msgspec.Struct, frozen=True):
    """A change as the log keeps it; `seq` counts from 1."""

    seq: int
    at_ms: int
    kind: ChangeKind
    reason: str
    by: str | None


def incident(connection: Connection, incident_id: str) -> Incident | None:
    """Return an incident by its id."""
    row = connection.execute(select(incidents).where(incidents.c.id == incident_id)).first()
    return None if row is None else read_incident(row)


def incidents_of(connection: Connection, incident_ids: Iterable[str]) -> list[Incident]:
    """Return incidents by their ids, in any order."""
    wanted = list(incident_ids)
    if not wanted:
        return []
    found = connection.execute(select(incidents).where(incidents.c.id.in_(wanted)))
    return [read_incident(row) for row in found]


def quiet(connection: Connection, *, heard_before_ms: int) -> list[Incident]:
    """Return the active incidents that nothing was heard of since, the longest quiet first."""
    found = connection.execute(
        select(incidents)
        .where(
            incidents.c.state.in_([state.value for state in ACTIVE]),
            incidents.c.heard_at_ms <= heard_before_ms,
        )
        .order_by(incidents.c.heard_at_ms, incidents.c.id)
    )
    return [read_incident(row) for row in found]


def newest(
    connection: Connection,
    *,
    limit: int,
    states: Sequence[State] = (),
    before: Incident | None = None,
) -> list[Incident]:
    """Return incidents, the last made first, in some states or in any, from behind `before` on."""
    chosen = select(incidents).order_by(incidents.c.created_at_ms.desc(), incidents.c.id.desc())
    if states:
        chosen = chosen.where(incidents.c.state.in_([state.value for state in states]))
    if before is not None:
        same = incidents.c.created_at_ms == before.created_at_ms
        earlier = incidents.c.created_at_ms < before.created_at_ms
        chosen = chosen.where(or_(earlier, and_(same, incidents.c.id < before.id)))
    return [read_incident(row) for row in connection.execute(chosen.limit(limit))]


def count_by_state(connection: Connection) -> dict[State, int]:
    """Return how many incidents are in each state."""
    found = connection.execute(select(incidents.c.state, func.count()).group_by(incidents.c.state))
    return dict.fromkeys(State, 0) | {State(state): count for state, count in found}


def put(connection: Connection, one: Incident) -> None:
    """Write an incident, new or not."""
    values = _values(one)
    changed = connection.execute(_UPDATE, {**values, "wanted": one.id})
    if not changed.rowcount:
        connection.execute(_INSERT, values)


def put_change(connection: Connection, change: Change) -> None:
    """Write a change into the log, and the incident as it is after it."""
    put(connection, change.incident)
    connection.execute(
        _LOG,
        {
            "incident_id": change.incident.id,
            "seq": change.incident.version,
            "at_ms": change.at_ms,
            "kind": change.kind.value,
            "reason": change.reason,
            "by": change.by,
        },
    )


def changes_of(connection: Connection, incident_id: str) -> list[LoggedChange]:
    """Return every change of an incident, in order."""
    found = connection.execute(
        select(incident_changes)
        .where(incident_changes.c.incident_id == incident_id)
        .order_by(incident_changes.c.seq)
    )
    return [
        LoggedChange(row.seq, row.at_ms, ChangeKind(row.kind), row.reason, row.by) for row in found
    ]


def spans_near(connection: Connection, observed: Observed, *, join_ms: int) -> list[Span]:
    """Return the spans of a finding's pool that are within a time of it."""
    found = connection.execute(
        _SPANS_NEAR,
        {
            "pool": observed.finding.kv_pool,
            "first_ms": observed.from_ms - join_ms,
            "last_ms": observed.until_ms + join_ms,
        },
    )
    return [Span(row.kv_pool, row.from_ms, row.until_ms, row.incident_id) for row in found]


def spans_of(connection: Connection, incident_id: str) -> list[Span]:
    """Return where and when an incident is."""
    found = connection.execute(
        select(incident_spans)
        .where(incident_spans.c.incident_id == incident_id)
        .order_by(incident_spans.c.kv_pool, incident_spans.c.from_ms)
    )
    return [Span(row.kv_pool, row.from_ms, row.until_ms, row.incident_id) for row in found]


def replace_spans(connection: Connection, old: Iterable[Span], new: Span) -> None:
    """Put one span where several were."""
    for span in old:
        connection.execute(_NO_SPAN, {"pool": span.kv_pool, "start_ms": span.from_ms})
    connection.execute(_NEW_SPAN, new._asdict())


def move_spans(connection: Connection, incident_ids: Sequence[str], to: str) -> None:
    """Make the spans of some incidents part of another."""
    connection.execute(
        update(incident_spans)
        .where(incident_spans.c.incident_id.in_(incident_ids))
        .values(incident_id=to)
    )


def read_incident(row: Row[Any]) -> Incident:
    """Return what a row of the table says."""
    return Incident(
        id=row.id,
        state=State(row.state),
        lead=_LEAD.decode(row.lead),
        opened_at_ms=row.opened_at_ms,
        last_seen_ms=row.last_seen_ms,
        created_at_ms=row.created_at_ms,
        heard_at_ms=row.heard_at_ms,
        finding_count=row.finding_count,
        kv_pools=_WORDS.decode(row.kv_pools),
        rules=_WORDS.decode(row.rules),
        tenants=_WORDS.decode(row.tenants),
        version=row.version,
        resolved_at_ms=row.resolved_at_ms,
        acknowledged_at_ms=row.acknowledged_at_ms,
        acknowledged_by=row.acknowledged_by,
        merged_into=row.merged_into,
    )


def _values(one: Incident) -> dict[str, str | int | None]:
    return {
        "id": one.id,
        "state": one.state.value,
        "severity": one.severity.value,
        "confidence": one.confidence.value,
        "kv_pool": one.kv_pool,
        "title": one.title,
        "lead": msgspec.json.encode(one.lead).decode(),
        "opened_at_ms": one.opened_at_ms,
        "last_seen_ms": one.last_seen_ms,
        "created_at_ms": one.created_at_ms,
        "heard_at_ms": one.heard_at_ms,
        "resolved_at_ms": one.resolved_at_ms,
        "acknowledged_at_ms": one.acknowledged_at_ms,
        "acknowledged_by": one.acknowledged_by,
        "merged_into": one.merged_into,
        "finding_count": one.finding_count,
        "kv_pools": msgspec.json.encode(one.kv_pools).decode(),
        "rules": msgspec.json.encode(one.rules).decode(),
        "tenants": msgspec.json.encode(one.tenants).decode(),
        "version": one.version,
    }
