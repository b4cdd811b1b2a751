"""The journal: every attempt to send, to whom, when, and how it ended."""

import enum
from typing import Final

import msgspec
from sqlalchemy import Connection, RowMapping, delete, func, insert, select

from exporters.outputs.contract import Delivered, Outcome, Rejected, Retry
from exporters.outputs.notification import Notification
from exporters.store.tables import journal

LONGEST_MS: Final = 2**31 - 1
"""The most that the column of a duration holds: a clock that jumps must not keep a line out."""


class Ended(enum.StrEnum):
    """How an attempt ended, or why there was none."""

    DELIVERED = "delivered"
    FAILED = "failed"
    REJECTED = "rejected"
    GONE = "gone"
    SILENCED = "silenced"
    DROPPED = "dropped"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the journal. `answer` is a status or fixed words, never what a receiver wrote."""

    notification_id: str
    output: str
    incident_id: str | None
    at_ms: int
    outcome: Ended
    answer: str
    duration_ms: int
    seq: int = 0


def attempt(
    notification: Notification, output: str, outcome: Outcome, *, at_ms: int, duration_ms: int
) -> Attempt:
    """Return the line of a sending that began at `at_ms`."""
    match outcome:
        case Delivered():
            ended = Ended.DELIVERED
        case Retry():
            ended = Ended.FAILED
        case Rejected(gone=gone):
            ended = Ended.GONE if gone else Ended.REJECTED
    return line(notification, output, ended, outcome.answer, at_ms=at_ms, duration_ms=duration_ms)


def line(
    notification: Notification,
    output: str,
    ended: Ended,
    answer: str,
    *,
    at_ms: int,
    duration_ms: int = 0,
) -> Attempt:
    """Return a line; for what was held back or dropped it took no time."""
    return Attempt(
        notification_id=notification.id,
        output=output,
        incident_id=notification.incident_id or None,
        at_ms=at_ms,
        outcome=ended,
        answer=answer,
        duration_ms=min(max(duration_ms, 0), LONGEST_MS),
    )


def record(connection: Connection, attempt: Attempt) -> None:
    """Add a line; its number is given here."""
    values = msgspec.structs.asdict(attempt)
    del values["seq"]
    connection.execute(insert(journal).values(**values | {"outcome": str(attempt.outcome)}))


def newest(
    connection: Connection,
    *,
    limit: int,
    output: str | None = None,
    incident_id: str | None = None,
    before_seq: int | None = None,
) -> list[Attempt]:
    """Return lines, the newest first, of one output or incident if asked for."""
    chosen = select(journal).order_by(journal.c.seq.desc()).limit(limit)
    if output is not None:
        chosen = chosen.where(journal.c.output == output)
    if incident_id is not None:
        chosen = chosen.where(journal.c.incident_id == incident_id)
    if before_seq is not None:
        chosen = chosen.where(journal.c.seq < before_seq)
    rows = connection.execute(chosen).mappings()
    return [_attempt(row) for row in rows]


def last_of_each(connection: Connection) -> dict[str, Attempt]:
    """Return the newest line of each output."""
    last = select(func.max(journal.c.seq)).group_by(journal.c.output)
    rows = connection.execute(select(journal).where(journal.c.seq.in_(last))).mappings()
    return {row["output"]: _attempt(row) for row in rows}


def prune(connection: Connection, *, before_ms: int) -> None:
    """Remove lines that are older."""
    connection.execute(delete(journal).where(journal.c.at_ms < before_ms))


def _attempt(row: RowMapping) -> Attempt:
    values = {str(name): value for name, value in row.items()}
    return Attempt(**{**values, "outcome": Ended(values["outcome"])})
