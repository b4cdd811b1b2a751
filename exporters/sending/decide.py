"""What becomes of a notification whose time has come: sent, held back, or dropped."""

from typing import Final, NamedTuple

from exporters.outputs.notification import Kind
from exporters.sending.schedule import LONGEST_MS
from exporters.store.outbox import Due, State


class Send(NamedTuple):
    """It goes out now."""


class Hold(NamedTuple):
    """It waits for a silence to end."""

    until_ms: int


class Drop(NamedTuple):
    """It is not sent, for this reason."""

    reason: str


class End(NamedTuple):
    """It is not sent, or not again: that its incident is over is told instead."""


Decision = Send | Hold | Drop | End

NOT_TOLD: Final = "resolved, and its receiver was never told of it"
QUIET: Final = "resolved while it was silenced"
STALE: Final = "a heartbeat that its receiver did not take in time says nothing any more"
OVER: Final = "its incident has ended while the output was not configured"
TOO_OLD: Final = "given up: its receiver was away for too long"


FRESH_MS: Final = 300_000
"""How old a heartbeat may be that is sent: later it would tell of life that may be over."""


class Known(NamedTuple):
    """What the store says about a due notification.

    `was_told`: its incident was delivered before. `is_over`: the end of it waits behind.
    `is_left_open`: its incident is over, and nothing that was put for the output says so.
    `failing_ms`: for how long every attempt of the output has failed.
    """

    silenced_until_ms: int | None
    was_told: bool
    is_over: bool
    is_left_open: bool
    failing_ms: int


def decide_heartbeat(due: Due, *, now_ms: int) -> Decision:
    """Decide about a heartbeat: it is sent while it says something about now."""
    return Drop(STALE) if now_ms - due.notification.created_at_ms > FRESH_MS else Send()


def decide(due: Due, known: Known, *, now_ms: int, give_up_ms: int) -> Decision:
    """Decide about the first open notification of an incident, or one that is told again.

    What is told again and what ends an incident are never silenced: they say nothing new, and the
    receiver would keep an incident open that is over.
    """
    if known.is_left_open:
        is_told = due.state is State.DELIVERED or known.was_told
        return End() if is_told else Drop(OVER)
    if due.state is State.DELIVERED:
        return Send()
    if due.notification.kind is Kind.RESOLVED:
        return Send() if known.was_told else Drop(NOT_TOLD)
    return _decide_news(due, known, now_ms=now_ms, give_up_ms=give_up_ms)


def _decide_news(due: Due, known: Known, *, now_ms: int, give_up_ms: int) -> Decision:
    if known.silenced_until_ms is not None:
        is_done = known.is_over and known.was_told  # its end must not wait behind it
        return Drop(QUIET) if is_done else Hold(known.silenced_until_ms)
    if due.state is State.SILENCED and known.is_over and not known.was_told:
        return Drop(QUIET)
    if _is_given_up(due, known, now_ms=now_ms, give_up_ms=give_up_ms):
        return Drop(TOO_OLD)
    return Send()


def _is_given_up(due: Due, known: Known, *, now_ms: int, give_up_ms: int) -> bool:
    """Whether its receiver was seen to be away for that long, not merely its age says so.

    The api may have been down, or a silence have lasted. What alone fails, while others arrive, is
    given up after as many attempts as fit in that time.
    """
    if not due.attempts or now_ms - due.notification.created_at_ms <= give_up_ms:
        return False
    return known.failing_ms > give_up_ms or due.attempts > give_up_ms // LONGEST_MS
