"""Forgets what is old, a little at a time; what an incident holds stays.

A hold keeps an incident and the rows of requests of its pools and times. What an incident becomes
part of is held with it.
"""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, insert, select, tuple_

from exporters.incidents.model import State
from exporters.store import heartbeats, journal, outbox
from exporters.store.incidents import spans_of
from exporters.store.settings import StoreRetentionSettings
from exporters.store.tables import (
    findings,
    holds,
    incident_changes,
    incident_spans,
    incidents,
    request_rows,
)

ROWS_PER_TURN: Final = 5_000
"""Rows that one call removes of each table: other writers wait for a fraction of a second."""


def forget(connection: Connection, settings: StoreRetentionSettings, *, now_ms: int) -> int:
    """Remove some of what is too old at `now_ms`; return how many rows, 0 when nothing is left."""
    removed = _forget_requests(connection, now_ms - settings.requests_ms)
    before_ms = now_ms - settings.incidents_ms
    removed += _forget_incidents(connection, before_ms)
    removed += _forget_weak_findings(connection, before_ms)
    outbox.prune(connection, before_ms=before_ms)
    journal.prune(connection, before_ms=before_ms)
    heartbeats.forget(connection, now_ms=now_ms)
    return removed


def hold(connection: Connection, incident_id: str, *, margin_ms: int = 0) -> None:
    """Keep an incident and its requests, with those up to a margin before and after."""
    _end_holds(connection, [incident_id])
    for span in spans_of(connection, incident_id):
        connection.execute(
            insert(holds).values(
                incident_id=incident_id,
                kv_pool=span.kv_pool,
                from_ms=span.from_ms - margin_ms,
                until_ms=span.until_ms + margin_ms,
            )
        )


def extend_holds(connection: Connection, incident_ids: Sequence[str], *, to: str) -> None:
    """Let an incident hold what the incidents hold that have become part of it; theirs stay."""
    found = select(holds).where(holds.c.incident_id.in_([*incident_ids, to]))
    until_ms: dict[tuple[str, int], int] = {}
    for row in connection.execute(found).all():
        at = (row.kv_pool, row.from_ms)
        until_ms[at] = max(row.until_ms, until_ms.get(at, row.until_ms))
    _end_holds(connection, [to])
    for (kv_pool, from_ms), until in until_ms.items():
        connection.execute(
            insert(holds).values(incident_id=to, kv_pool=kv_pool, from_ms=from_ms, until_ms=until)
        )


def release(connection: Connection, incident_id: str) -> None:
    """Let retention have an incident again, and those that have become part of it."""
    found = [incident_id]
    parts = [incident_id]
    while parts:
        inside = select(incidents.c.id).where(incidents.c.merged_into.in_(parts))
        parts = list(connection.scalars(inside))
        found += parts
    _end_holds(connection, found)


def _end_holds(connection: Connection, incident_ids: Sequence[str]) -> None:
    connection.execute(delete(holds).where(holds.c.incident_id.in_(incident_ids)))


def is_held_row() -> ColumnElement[bool]:
    """Return the condition that a row of a request is held."""
    row = request_rows.c
    return exists().where(
        and_(
            holds.c.kv_pool == row.kv_pool,
            row.started_at_ms.between(holds.c.from_ms, holds.c.until_ms),
        )
    )


def _forget_requests(connection: Connection, before_ms: int) -> int:
    row, held = request_rows.c, is_held_row()
    key = (row.tenant, row.request_id, row.started_at_ms, row.kv_pool)
    old = select(*key).where(row.started_at_ms < before_ms, ~held).limit(ROWS_PER_TURN)
    return connection.execute(delete(request_rows).where(tuple_(*key).in_(old))).rowcount


def _forget_incidents(connection: Connection, before_ms: int) -> int:
    held = exists().where(holds.c.incident_id == incidents.c.id)
    over = [State.RESOLVED.value, State.MERGED.value]
    old = select(incidents.c.id).where(
        incidents.c.state.in_(over), incidents.c.heard_at_ms < before_ms, ~held
    )
    removed = 0
    for incident_id in connection.scalars(old.limit(ROWS_PER_TURN // 100)).all():
        for table in (findings, incident_changes, incident_spans):
            connection.execute(delete(table).where(table.c.incident_id == incident_id))
        connection.execute(delete(incidents).where(incidents.c.id == incident_id))
        removed += 1
    return removed


def _forget_weak_findings(connection: Connection, before_ms: int) -> int:
    old = select(findings.c.id).where(
        findings.c.incident_id.is_(None), findings.c.detected_at_ms < before_ms
    )
    chosen = findings.c.id.in_(old.limit(ROWS_PER_TURN))
    return connection.execute(delete(findings).where(chosen)).rowcount
