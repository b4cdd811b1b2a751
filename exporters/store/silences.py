"""Silences in the store: spans of time in which incidents that match are not told of."""

import msgspec
from sqlalchemy import Connection, RowMapping, insert, select, update

from exporters.store.tables import silences

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
    """End a silence now; false if there is none that has not ended."""
    ended = connection.execute(
        update(silences)
        .where(silences.c.id == silence_id, silences.c.ends_at_ms > now_ms)
        .values(ends_at_ms=now_ms)
    )
    return bool(ended.rowcount)


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
