"""How the outputs stand, from the settings and the store: for people, whoever asks."""

from collections.abc import Iterable

import msgspec
from sqlalchemy import Connection

from exporters.outputs.settings import AnyOutput
from exporters.store import journal, outbox
from exporters.store.journal import Attempt, Ended
from exporters.store.outbox import State


class OutputState(msgspec.Struct, frozen=True, kw_only=True):
    """One output. `target` shows no secret. `waiting` counts what is silenced too.

    `is_gone`: the last answer of its receiver was that it wants nothing any more.
    """

    name: str
    kind: str
    target: str
    dry_run: bool
    waiting: int
    delivered: int
    rejected: int
    dropped: int
    is_gone: bool
    last: Attempt | None


def overview(connection: Connection, outputs: Iterable[AnyOutput]) -> list[OutputState]:
    """Return the state of every output, in the order of the settings."""
    counts, last = outbox.counts(connection), journal.last_of_each(connection)
    return [_state(one, counts.get(one.name, {}), last.get(one.name)) for one in outputs]


def _state(output: AnyOutput, counts: dict[State, int], last: Attempt | None) -> OutputState:
    return OutputState(
        name=output.name,
        kind=output.kind,
        target=output.target,
        dry_run=output.dry_run,
        waiting=sum(counts.get(state, 0) for state in outbox.OPEN),
        delivered=counts.get(State.DELIVERED, 0),
        rejected=counts.get(State.REJECTED, 0),
        dropped=counts.get(State.DROPPED, 0),
        is_gone=last is not None and last.outcome is Ended.GONE,
        last=last,
    )
