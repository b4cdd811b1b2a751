"""Silences in the store, spans of time in which what matches is not told of, and what they hold."""

import msgspec
from sqlalchemy import Connection, RowMapping, insert, select, update

from exporters.outputs.notification import Notification
from exporters.store import journal
from exporters.store.journal import Ended
from exporters.store.outbox import NEVER_MS, State
from exporters.store.tables import outbox, silences

_Words = tuple[str, ...]


class Silenced(msgspec.Struct, frozen=True, kw_only=True):
    """What a silence is about: what every list that is not empty matches.

    Names may hold `*` for any characters and `?` for one. Everything empty matches everything.
    """

    incidents: _Words = ()
    rules: _Words = ()
    tenants: _Words = ()
    kv_pools: _Words = ()


class Silence(msgspec.Struct, frozen=True, kw_only=True):
    """One silence. It holds from `starts_at_ms` until before `ends_at_ms`, wall clock."""

    id: str
    about: Silenced
    starts_at_ms: int
    ends_at_ms: int
    by: str
    comment: str


def add(connection: Connection, silence: Silence) -> None:
    """Store a new silence; its id must be new."""
    connection.execute(
        insert(silences).values(
            id=silence.id,
            matchers=msgspec.json.encode(silence.about).decode(),
            starts_at_ms=silence.starts_at_ms,
            ends_at_ms=silence.ends_at_ms,
            by=silence.by,
            comment=silence.comment,
        )
    )


def end(connection: Connection, silence_id: str, *, now_ms: int) -> bool:
    """End a silence now; false if there is none that has not ended. Lets go of what was held."""
    ended = connection.execute(
        update(silences)
        .where(silences.c.id == silence_id, silences.c.ends_at_ms > now_ms)
        .values(ends_at_ms=now_ms)
    )
    if not ended.rowcount:
        return False
    let_go(connection)
    return True


def let_go(connection: Connection) -> None:
    """Make all that is held back due as it was before; what other silences hold is held again.

    Whoever ends a silence before its time must call this: what is held waits for that time.
    """
    connection.execute(
        update(outbox)
        .where(outbox.c.state == State.SILENCED)
        .values(due_at_ms=outbox.c.created_at_ms)
    )


def drop_held(connection: Connection, output: str, end: Notification, reason: str) -> None:
    """Drop what is held back of an incident before its end, so that the end need not wait for it.

    Each is noted in the journal with the reason.
    """
    held = (
        select(outbox.c.id, outbox.c.body)
        .where(
            outbox.c.output == output,
            outbox.c.incident_id == end.incident_id,
            outbox.c.sequence < end.sequence,
            outbox.c.state == State.SILENCED,
        )
        .order_by(outbox.c.sequence)
    )
    for row in connection.execute(held).all():
        dropped = {"state": str(State.DROPPED), "due_at_ms": NEVER_MS}
        connection.execute(update(outbox).where(outbox.c.id == row.id).values(dropped))
        told = msgspec.json.decode(row.body, type=Notification)
        line = journal.line(told, output, Ended.DROPPED, reason, at_ms=end.created_at_ms)
        journal.record(connection, line)


def active(connection: Connection, *, now_ms: int) -> list[Silence]:
    """Return the silences that hold now."""
    chosen = select(silences).where(
        silences.c.starts_at_ms <= now_ms, silences.c.ends_at_ms > now_ms
    )
    return [_silence(row) for row in connection.execute(chosen).mappings()]


def newest(connection: Connection, *, limit: int) -> list[Silence]:
    """Return silences past and future, the latest end first."""
    chosen = select(silences).order_by(silences.c.ends_at_ms.desc(), silences.c.id).limit(limit)
    return [_silence(row) for row in connection.execute(chosen).mappings()]


def _silence(row: RowMapping) -> Silence:
    return Silence(
        id=row["id"],
        about=msgspec.json.decode(row["matchers"], type=Silenced),
        starts_at_ms=row["starts_at_ms"],
        ends_at_ms=row["ends_at_ms"],
        by=row["by"],
        comment=row["comment"],
    )
