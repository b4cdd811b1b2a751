"""When the newest heartbeat of each sender that has arrived was made; no finding, no incident."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, and_, delete, func, insert, select, update

from exporters.outputs.notification import Kind
from exporters.store.outbox import OPEN
from exporters.store.tables import heartbeats, journal, outbox

KEEP_MS: Final = 86_400_000
"""How long a sender is remembered that is not heard any more, and what was sent of heartbeats."""


class Heartbeat(NamedTuple):
    """One that has arrived. `sent_ms` is by the clock of its sender."""

    sender: str
    sent_ms: int


Hear = Callable[[Connection, Sequence[Heartbeat]], object]
"""Told of heartbeats that have arrived, inside the transaction that notes them."""


def put(connection: Connection, beats: Iterable[Heartbeat], *, now_ms: int) -> None:
    """Note what has arrived; of each sender the newest counts, and none is of the future."""
    for beat in beats:
        sent_ms = min(beat.sent_ms, now_ms)
        mine = heartbeats.c.sender == beat.sender
        known = connection.scalar(select(heartbeats.c.sent_ms).where(mine))
        if known is None:
            connection.execute(insert(heartbeats).values(sender=beat.sender, sent_ms=sent_ms))
        elif known < sent_ms:
            connection.execute(update(heartbeats).where(mine).values(sent_ms=sent_ms))


def latest(connection: Connection) -> dict[str, int]:
    """Return by sender when the newest that arrived was made."""
    rows = connection.execute(select(heartbeats).order_by(heartbeats.c.sender))
    return {row.sender: row.sent_ms for row in rows}


def forget(connection: Connection, *, now_ms: int) -> None:
    """Forget senders that are gone, but for the last one, and what was sent of heartbeats."""
    before_ms = now_ms - KEEP_MS
    newest_ms = connection.scalar(select(func.max(heartbeats.c.sent_ms))) or 0
    gone = heartbeats.c.sent_ms < min(before_ms, newest_ms)
    connection.execute(delete(heartbeats).where(gone))
    old = and_(
        outbox.c.kind == Kind.HEARTBEAT,
        outbox.c.state.not_in(OPEN),
        outbox.c.created_at_ms < before_ms,
    )
    connection.execute(
        delete(journal).where(journal.c.notification_id.in_(select(outbox.c.id).where(old)))
    )
    connection.execute(delete(outbox).where(old))


def forget_all(connection: Connection) -> None:
    """Forget that there ever were heartbeats: they are switched off."""
    connection.execute(delete(heartbeats))
