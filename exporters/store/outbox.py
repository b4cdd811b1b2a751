"""The outbox: what is to be sent, written in the transaction that made it news.

A row is open (waiting or silenced) until it is delivered, rejected or dropped. Of the open rows of
one incident for one output only the first may be sent, so the order of an incident is kept, and
incidents do not wait for each other.
"""

import enum
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import (
    Connection,
    Row,
    Select,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from exporters.outputs.notification import Kind, Notification
from exporters.store.tables import incidents, outbox

NEVER_MS: Final = 2**53
"""When a row is due that is not sent again: far beyond any clock, and exact in JSON."""


class State(enum.StrEnum):
    """Where a row stands."""

    WAITING = "waiting"
    SILENCED = "silenced"
    DELIVERED = "delivered"
    REJECTED = "rejected"
    DROPPED = "dropped"


OPEN: Final = (State.WAITING, State.SILENCED)


class Due(NamedTuple):
    """A row whose time has come. `attempts` is how often it was tried without an answer."""

    notification: Notification
    output: str
    state: State
    attempts: int


def put(connection: Connection, output: str, notifications: Iterable[Notification]) -> int:
    """Add what is not there yet and return how many were new: an id is put once.

    Needs a writing transaction.
    """
    added = 0
    for one in notifications:
        if connection.execute(select(outbox.c.id).where(outbox.c.id == one.id)).first():
            continue
        connection.execute(
            insert(outbox).values(
                id=one.id,
                output=output,
                incident_id=one.incident_id or None,
                sequence=one.sequence,
                kind=str(one.kind),
                created_at_ms=one.created_at_ms,
                due_at_ms=one.created_at_ms,
                attempts=0,
                state=str(State.WAITING),
                body=msgspec.json.encode(one).decode(),
            )
        )
        added += 1
    return added


def first_due(connection: Connection, output: str, *, now_ms: int) -> Due | None:
    """Return the open row that has been due for longest, of those that are first in their incident.

    Without one, return what was delivered and is to be told again by now, if anything is.
    """
    chosen = _heads(output).where(outbox.c.due_at_ms <= now_ms)
    row = connection.execute(chosen.order_by(outbox.c.due_at_ms, outbox.c.id).limit(1)).first()
    if row is None:
        again = select(outbox).where(
            outbox.c.output == output,
            outbox.c.state == State.DELIVERED,
            outbox.c.due_at_ms <= now_ms,
        )
        row = connection.execute(again.order_by(outbox.c.due_at_ms).limit(1)).first()
    return None if row is None else _due(row)


def next_due_ms(connection: Connection, output: str) -> int:
    """Return when `first_due` will next have something to give, NEVER_MS if nothing waits."""
    heads = _heads(output).with_only_columns(func.min(outbox.c.due_at_ms))
    again = select(func.min(outbox.c.due_at_ms)).where(
        outbox.c.output == output, outbox.c.state == State.DELIVERED
    )
    found = (connection.execute(one).scalar() for one in (heads, again))
    return min((at_ms for at_ms in found if at_ms is not None), default=NEVER_MS)


def was_told(connection: Connection, output: str, incident_id: str) -> bool:
    """Whether an output has been told of an incident, and must hear that it is resolved."""
    told = select(outbox.c.id).where(
        outbox.c.output == output,
        outbox.c.incident_id == incident_id,
        outbox.c.state == State.DELIVERED,
    )
    return connection.execute(told.limit(1)).first() is not None


def has_any(connection: Connection, output: str, incident_id: str) -> bool:
    """Whether anything of an incident was ever put for an output."""
    put_before = select(outbox.c.id).where(
        outbox.c.output == output, outbox.c.incident_id == incident_id
    )
    return connection.execute(put_before.limit(1)).first() is not None


def is_resolved_behind(connection: Connection, due: Due) -> bool:
    """Whether the end of the incident waits behind this row."""
    behind = select(outbox.c.id).where(
        outbox.c.output == due.output,
        outbox.c.incident_id == due.notification.incident_id,
        outbox.c.sequence > due.notification.sequence,
        outbox.c.kind == Kind.RESOLVED,
        outbox.c.state.in_(OPEN),
    )
    return connection.execute(behind.limit(1)).first() is not None


def delivered(connection: Connection, due: Due, *, again_at_ms: int = NEVER_MS) -> None:
    """Note that a row has arrived, and when it is to be told again.

    What was delivered of its incident before is not told again.
    """
    connection.execute(
        update(outbox)
        .where(
            outbox.c.output == due.output,
            outbox.c.incident_id == due.notification.incident_id,
            outbox.c.sequence < due.notification.sequence,
            outbox.c.state == State.DELIVERED,
        )
        .values(due_at_ms=NEVER_MS)
    )
    _set(connection, due, state=State.DELIVERED, due_at_ms=again_at_ms, attempts=due.attempts)


def wait(connection: Connection, due: Due, *, until_ms: int, attempts: int) -> None:
    """Keep a row for later; one that was delivered stays so, and is told again later."""
    state = State.DELIVERED if due.state is State.DELIVERED else State.WAITING
    _set(connection, due, state=state, due_at_ms=until_ms, attempts=attempts)


def silence(connection: Connection, due: Due, *, until_ms: int) -> None:
    """Keep a row until a silence ends."""
    _set(connection, due, state=State.SILENCED, due_at_ms=until_ms, attempts=due.attempts)


def close(connection: Connection, due: Due, state: State) -> None:
    """Note that a row will not be sent: rejected by its receiver, or dropped by us."""
    _set(connection, due, state=state, due_at_ms=NEVER_MS, attempts=due.attempts)


def hurry(connection: Connection, output: str, *, now_ms: int) -> None:
    """Make everything due now that waits because its sending failed: the receiver is back."""
    connection.execute(
        update(outbox)
        .where(
            outbox.c.output == output,
            outbox.c.state == State.WAITING,
            outbox.c.attempts > 0,
            outbox.c.due_at_ms > now_ms,
        )
        .values(due_at_ms=now_ms)
    )


def counts(connection: Connection) -> dict[str, dict[State, int]]:
    """Return how many rows stand where, by output."""
    rows = connection.execute(
        select(outbox.c.output, outbox.c.state, func.count()).group_by(
            outbox.c.output, outbox.c.state
        )
    )
    found: dict[str, dict[State, int]] = {}
    for output, state, count in rows:
        found.setdefault(output, {})[State(state)] = count
    return found


def prune(connection: Connection, *, before_ms: int) -> None:
    """Remove closed rows that are older and whose incident is kept no longer."""
    connection.execute(
        delete(outbox).where(
            outbox.c.state.not_in(OPEN),
            outbox.c.created_at_ms < before_ms,
            or_(
                outbox.c.incident_id.is_(None),
                ~exists().where(incidents.c.id == outbox.c.incident_id),
            ),
        )
    )


def _heads(output: str) -> Select[tuple[object, ...]]:
    earlier = outbox.alias("earlier")
    blocked = exists().where(
        and_(
            earlier.c.output == outbox.c.output,
            earlier.c.incident_id == outbox.c.incident_id,
            earlier.c.sequence < outbox.c.sequence,
            earlier.c.state.in_(OPEN),
        )
    )
    return select(outbox).where(outbox.c.output == output, outbox.c.state.in_(OPEN), ~blocked)


def _set(connection: Connection, due: Due, *, state: State, due_at_ms: int, attempts: int) -> None:
    connection.execute(
        update(outbox)
        .where(outbox.c.id == due.notification.id)
        .values(state=str(state), due_at_ms=due_at_ms, attempts=attempts)
    )


def _due(row: Row[tuple[object, ...]]) -> Due:
    at = row._mapping
    return Due(
        notification=msgspec.json.decode(at["body"], type=Notification),
        output=at["output"],
        state=State(at["state"]),
        attempts=at["attempts"],
    )
