"""What becomes of a notification whose time has come: sent, held back, or dropped."""

from typing import Final, NamedTuple

from exporters.outputs.notification import Kind
from exporters.store.outbox import Due, State


class Send(NamedTuple):
    """It goes out now."""


class Hold(NamedTuple):
    """It waits for a silence to end."""

    until_ms: int


class Drop(NamedTuple):
    """It is not sent, for this reason."""

    reason: str


Decision = Send | Hold | Drop

NOT_TOLD: Final = "resolved, and its receiver was never told of it"
QUIET: Final = "resolved while it was silenced"
STALE: Final = "a heartbeat that its receiver did not take in time says nothing any more"
TOO_OLD: Final = "given up: its receiver was away for too long"


FRESH_MS: Final = 300_000
"""How old a heartbeat may be that is sent: later it would tell of life that may be over."""


class Known(NamedTuple):
    """What the store says about a due notification.

    `was_told`: its incident was delivered before. `is_over`: the end of it waits behind.
    """

    silenced_until_ms: int | None
    was_told: bool
    is_over: bool


def decide_heartbeat(due: Due, *, now_ms: int) -> Decision:
    """Decide about a heartbeat: it is sent while it says something about now."""
    return Drop(STALE) if now_ms - due.notification.created_at_ms > FRESH_MS else Send()


def decide(due: Due, known: Known, *, now_ms: int, give_up_ms: int) -> Decision:
    """Decide about the first open notification of an incident, or one that is told again.

    What is told again and what ends an incident are never silenced: they say nothing new, and the
    receiver would keep an incident open that is over.
    """
    if due.state is State.DELIVERED:
        return Send()
    if due.notification.kind is Kind.RESOLVED:
        return Send() if known.was_told else Drop(NOT_TOLD)
    if known.silenced_until_ms is not None:
        return Hold(known.silenced_until_ms)
    if due.state is State.SILENCED and known.is_over and not known.was_told:
        return Drop(QUIET)
    if due.attempts and now_ms - due.notification.created_at_ms > give_up_ms:
        return Drop(TOO_OLD)
    return Send()
