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
    ColumnElement,
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

from exporters.incidents.model import ACTIVE
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
    """A row as it was when its time had come. `attempts` is how often it failed.

    What is noted about it later counts only if no other process has changed the row since.
    """

    notification: Notification
    output: str
    state: State
    attempts: int
    due_at_ms: int


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


def first_due(
    connection: Connection, output: str, *, now_ms: int, again_first: bool = False
) -> Due | None:
    """Return the open row that has been due for longest, of those that are first in their incident.

    Without one, return what was delivered and is to be told again by now, if anything is; with
    `again_first` that is looked for first.
    """
    new = _heads(output).where(outbox.c.due_at_ms <= now_ms)
    new = new.order_by(outbox.c.due_at_ms, outbox.c.id)
    again = select(outbox).where(_is_delivered(output), outbox.c.due_at_ms <= now_ms)
    again = again.order_by(outbox.c.due_at_ms)
    for chosen in (again, new) if again_first else (new, again):
        row = connection.execute(chosen.limit(1)).first()
        if row is not None:
            return _due(row)
    return None


def next_due_ms(connection: Connection, output: str) -> int:
    """Return when `first_due` will next have something to give, NEVER_MS if nothing waits."""
    heads = _heads(output).with_only_columns(func.min(outbox.c.due_at_ms))
    at_ms = connection.execute(heads).scalar()
    again_ms = next_again_ms(connection, output)
    return again_ms if at_ms is None else min(at_ms, again_ms)


def next_again_ms(connection: Connection, output: str) -> int:
    """Return when something that was delivered is next told again, NEVER_MS if nothing is."""
    again = select(func.min(outbox.c.due_at_ms)).where(_is_delivered(output))
    at_ms = connection.execute(again).scalar()
    return NEVER_MS if at_ms is None else at_ms


def was_told(connection: Connection, output: str, incident_id: str) -> bool:
    """Whether an incident is open for an output, which must hear that it is resolved.

    It is if the last that was delivered of it is not its end.
    """
    told = select(outbox.c.kind).where(
        outbox.c.output == output,
        outbox.c.incident_id == incident_id,
        outbox.c.state == State.DELIVERED,
    )
    last = connection.execute(told.order_by(outbox.c.sequence.desc()).limit(1)).scalar()
    return last is not None and last != Kind.RESOLVED


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


def is_left_open(connection: Connection, due: Due) -> bool:
    """Whether the incident of this row is over and nothing that was put here says so.

    So it is where the output was not configured when the incident ended. An acknowledgement may
    come after the end; one that was delivered since opens the incident anew for its receiver.
    """
    told = due.notification
    if told.is_resolved or not told.incident_id:
        return False
    of_incident = (outbox.c.output == due.output, outbox.c.incident_id == told.incident_id)
    since = told.sequence
    if told.kind is Kind.ACKNOWLEDGED and due.state is not State.DELIVERED:
        news = outbox.c.kind.not_in([str(Kind.ACKNOWLEDGED), str(Kind.RESOLVED)])
        last = select(func.max(outbox.c.sequence)).where(
            *of_incident, news, outbox.c.sequence < told.sequence
        )
        since = connection.execute(last).scalar() or 0
    end = select(outbox.c.id).where(
        *of_incident, outbox.c.sequence >= since, outbox.c.kind == str(Kind.RESOLVED)
    )
    if connection.execute(end.limit(1)).first() is not None:
        return False
    state = select(incidents.c.state).where(incidents.c.id == told.incident_id)
    return connection.execute(state).scalar() not in ACTIVE


def delivered(connection: Connection, due: Due, *, again_at_ms: int = NEVER_MS) -> None:
    """Note that a row has arrived, and when it is to be told again.

    What was delivered of its incident before is not told again.
    """
    if _set(connection, due, state=State.DELIVERED, due_at_ms=again_at_ms, attempts=due.attempts):
        _stop_earlier(connection, due)


def wait(connection: Connection, due: Due, *, until_ms: int, attempts: int) -> None:
    """Keep a row for later; one that was delivered stays so, and is told again later."""
    state = State.DELIVERED if due.state is State.DELIVERED else State.WAITING
    _set(connection, due, state=state, due_at_ms=until_ms, attempts=attempts)


def silence(connection: Connection, due: Due, *, until_ms: int) -> None:
    """Keep a row until a silence ends; what failed before it says nothing about what follows."""
    _set(connection, due, state=State.SILENCED, due_at_ms=until_ms, attempts=0)


def close(connection: Connection, due: Due, state: State) -> None:
    """Note that a row will not be sent: rejected by its receiver, or dropped by us.

    With the end of an incident goes the telling again of what was delivered of it: it is over.
    """
    is_set = _set(connection, due, state=state, due_at_ms=NEVER_MS, attempts=due.attempts)
    if is_set and due.notification.is_resolved:
        _stop_earlier(connection, due)


def stop_telling(connection: Connection, due: Due) -> None:
    """Tell what was delivered never again."""
    _set(connection, due, state=due.state, due_at_ms=NEVER_MS, attempts=due.attempts)


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


def _is_delivered(output: str) -> ColumnElement[bool]:
    return and_(outbox.c.output == output, outbox.c.state == str(State.DELIVERED))


def _stop_earlier(connection: Connection, due: Due) -> None:
    """Tell never again what was delivered of the incident before this row."""
    connection.execute(
        update(outbox)
        .where(
            _is_delivered(due.output),
            outbox.c.incident_id == due.notification.incident_id,
            outbox.c.sequence < due.notification.sequence,
        )
        .values(due_at_ms=NEVER_MS)
    )


def _set(connection: Connection, due: Due, *, state: State, due_at_ms: int, attempts: int) -> bool:
    """Change a row that still is as it was taken; false if it is not, and nothing was changed.

    Another process may have sent it meanwhile: one that was long away must not undo that.
    """
    as_taken = [
        outbox.c.id == due.notification.id,
        outbox.c.state == str(due.state),
        outbox.c.attempts == due.attempts,
    ]
    if due.state is State.DELIVERED:  # nothing else tells whether it was told again meanwhile
        as_taken.append(outbox.c.due_at_ms == due.due_at_ms)
    changed = connection.execute(
        update(outbox)
        .where(*as_taken)
        .values(state=str(state), due_at_ms=due_at_ms, attempts=attempts)
    )
    return changed.rowcount > 0


def _due(row: Row[tuple[object, ...]]) -> Due:
    at = row._mapping
    return Due(
        notification=msgspec.json.decode(at["body"], type=Notification),
        output=at["output"],
        state=State(at["state"]),
        attempts=at["attempts"],
        due_at_ms=at["due_at_ms"],
    )
