"""Sends what the outbox has for one output, one at a time, and writes down how each ended.

An output has a lane of its own, so none waits for another. An outcome is kept until the store has
taken it: what was delivered is sent again only if this process dies in between, with the same id.
"""

import logging
import time
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec
from sqlalchemy import Connection

from exporters.outputs.contract import Delivered, Outcome, Output, Rejected, Retry
from exporters.outputs.notification import Kind, Notification
from exporters.sending.announce import notification_id
from exporters.sending.breaker import Breaker
from exporters.sending.decide import (
    OVER,
    Decision,
    Drop,
    End,
    Hold,
    Known,
    Send,
    decide,
    decide_heartbeat,
)
from exporters.sending.matching import silenced_until_ms
from exporters.sending.rate import Rate
from exporters.sending.schedule import backoff_ms
from exporters.store import incidents, journal, outbox, silences
from exporters.store.database import Database
from exporters.store.journal import Attempt, Ended
from exporters.store.outbox import NEVER_MS, Due, State

RESOLVED_AGAIN_MS: Final = 300_000
"""For how long what is resolved is told again, to an output that must be told again: five minutes,
so that the end arrives although a receiver restarts."""

SILENCED: Final = "not sent while it is silenced"

_log = logging.getLogger(__name__)


class Sent(NamedTuple):
    """A sending that is over.

    It began at `at_ms` and ended at `ended_ms` by a clock that may have been set in between, so how
    long it took is measured by another.
    """

    due: Due
    outcome: Outcome
    at_ms: int
    ended_ms: int
    duration_ms: int


class Lane:
    """One output, its outbox rows, its breaker and its rate.

    `now_ms` is the clock, `chance` draws from 0 to 1. `on_gone` is called in the transaction that
    notes that the receiver wants nothing any more.
    """

    def __init__(
        self,
        output: Output,
        database: Database,
        *,
        per_minute: int,
        give_up_ms: int,
        now_ms: Callable[[], int],
        chance: Callable[[], float],
        on_gone: Callable[[Connection, str, int], None],
    ) -> None:
        self.output = output
        self.is_gone = False
        self._database = database
        self._give_up_ms = give_up_ms
        self._now_ms = now_ms
        self._chance = chance
        self._on_gone = on_gone
        self._rate = Rate(per_minute)
        self._breaker = Breaker()
        self._unsettled: Sent | None = None
        self._again_first = False

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt failed."""
        return self._breaker.is_failing

    def settle(self) -> None:
        """Write down the last outcome if the store has not taken it yet. Raises StoreError."""
        if self._unsettled is not None:
            self._settle(self._unsettled)
            self._unsettled = None

    def step(self) -> int:
        """Do one thing, if there is one to do; return when to call again, maybe now.

        Raises StoreError; calling again goes on where it was.
        """
        self.settle()
        now_ms = self._now_ms()
        if self.is_gone:
            return NEVER_MS
        opens_ms = self._breaker.opens_ms(now_ms)
        if opens_ms > now_ms:
            return opens_ms
        free_at_ms = self._rate.free_at_ms(now_ms)
        with self._database.read() as connection:
            due = self._next(connection, now_ms, is_free=free_at_ms == now_ms)
            if due is None:
                return outbox.next_due_ms(connection, self.output.name)
            decision = self._decide(connection, due, now_ms)
            again_ms = outbox.next_again_ms(connection, self.output.name)
        if not isinstance(decision, Send):
            self._put_aside(due, decision, now_ms)
            return now_ms
        if free_at_ms > now_ms and due.state is not State.DELIVERED:
            return min(free_at_ms, again_ms)
        self._send(due, now_ms)
        self.settle()
        return self._now_ms()

    def _next(self, connection: Connection, now_ms: int, *, is_free: bool) -> Due | None:
        """Return what is next: something new and something told again take turns.

        Telling again does not count for the rate, so it goes on while that is used up: a receiver
        that must be told again would otherwise end incidents because there are many.
        """
        again_first = self._again_first or not is_free
        return outbox.first_due(
            connection, self.output.name, now_ms=now_ms, again_first=again_first
        )

    def _decide(self, connection: Connection, due: Due, now_ms: int) -> Decision:
        if due.notification.kind is Kind.HEARTBEAT:
            return decide_heartbeat(due, now_ms=now_ms)
        known = _known(connection, due, now_ms, failing_ms=self._breaker.failing_ms(now_ms))
        return decide(due, known, now_ms=now_ms, give_up_ms=self._give_up_ms)

    def _send(self, due: Due, now_ms: int) -> None:
        if due.state is not State.DELIVERED:
            self._rate.take(now_ms)
        self._again_first = due.state is not State.DELIVERED
        begun_s = time.monotonic()
        try:
            outcome = self.output.send(due.notification, at_ms=now_ms)
        except Exception as error:  # noqa: BLE001 - a fault in one output must not end its lane
            _log.error("output %s: internal fault (%s)", self.output.name, type(error).__name__)
            outcome = Retry("internal fault")
        took_ms = int((time.monotonic() - begun_s) * 1_000)
        self._unsettled = Sent(due, outcome, now_ms, self._now_ms(), took_ms)

    def _settle(self, sent: Sent) -> None:
        due, outcome, now_ms = sent.due, sent.outcome, sent.ended_ms
        was_failing = self._breaker.is_failing
        with self._database.write() as connection:
            match outcome:
                case Delivered():
                    outbox.delivered(connection, due, again_at_ms=self._again_at_ms(due, now_ms))
                    if was_failing:
                        outbox.hurry(connection, self.output.name, now_ms=now_ms)
                case Retry(after_ms=after_ms):
                    self._wait(connection, due, now_ms, after_ms or 0)
                case Rejected(gone=True):  # not an attempt: nobody tries until the api restarts
                    again_ms = now_ms + backoff_ms(1, self._chance())
                    outbox.wait(connection, due, until_ms=again_ms, attempts=due.attempts)
                    self._on_gone(connection, self.output.name, now_ms)
                case Rejected():
                    self._reject(connection, due, now_ms)
            if not (due.state is State.DELIVERED and isinstance(outcome, Delivered)):
                journal.record(connection, _line(sent))
        self._learn(outcome, now_ms)

    def _learn(self, outcome: Outcome, now_ms: int) -> None:
        """Take in what an outcome says about the receiver, once it is written down."""
        name = self.output.name
        match outcome:
            case Retry(answer=answer, after_ms=after_ms):
                if not self._breaker.is_failing:
                    _log.warning("output %s: not delivered (%s), tried again", name, answer)
                self._breaker.failed(now_ms=now_ms)
                if after_ms is not None:
                    self._breaker.pause(until_ms=now_ms + after_ms)
            case Rejected(gone=True):
                self.is_gone = True
                _log.error("output %s: its receiver is gone (410), nothing is sent to it", name)
            case Rejected(answer=answer):
                self._breaker.succeeded()
                _log.error("output %s: a notification was rejected (%s)", name, answer)
            case Delivered():
                self._breaker.succeeded()

    def _wait(self, connection: Connection, due: Due, now_ms: int, after_ms: int) -> None:
        attempts = due.attempts + 1
        wait_ms = max(backoff_ms(attempts, self._chance()), after_ms)
        outbox.wait(connection, due, until_ms=now_ms + wait_ms, attempts=attempts)

    def _reject(self, connection: Connection, due: Due, now_ms: int) -> None:
        if due.state is State.DELIVERED:  # told again: that it took it once stays true
            outbox.delivered(connection, due, again_at_ms=self._again_at_ms(due, now_ms))
        else:
            outbox.close(connection, due, State.REJECTED)

    def _again_at_ms(self, due: Due, now_ms: int) -> int:
        if self.output.resend_ms is None or not due.notification.incident_id:
            return NEVER_MS
        again_ms = now_ms + self.output.resend_ms
        ends_ms = due.notification.created_at_ms + RESOLVED_AGAIN_MS
        return NEVER_MS if due.notification.is_resolved and again_ms > ends_ms else again_ms

    def _put_aside(self, due: Due, decision: Hold | Drop | End, now_ms: int) -> None:
        with self._database.write() as connection:
            match decision:
                case Hold(until_ms=until_ms):
                    outbox.silence(connection, due, until_ms=until_ms)
                    self._note(connection, due, Ended.SILENCED, SILENCED, now_ms)
                case Drop(reason=reason):
                    outbox.close(connection, due, State.DROPPED)
                    self._note(connection, due, Ended.DROPPED, reason, now_ms)
                case End():
                    outbox.put(connection, due.output, [_the_end(connection, due, now_ms)])
                    if due.state is State.DELIVERED:
                        outbox.stop_telling(connection, due)
                    else:
                        outbox.close(connection, due, State.DROPPED)
                        self._note(connection, due, Ended.DROPPED, OVER, now_ms)

    def _note(
        self, connection: Connection, due: Due, ended: Ended, answer: str, now_ms: int
    ) -> None:
        line = journal.line(due.notification, due.output, ended, answer, at_ms=now_ms)
        journal.record(connection, line)


def _the_end(connection: Connection, due: Due, now_ms: int) -> Notification:
    """Return what tells that an incident is over, in the words its receiver knows it by."""
    told = due.notification
    incident = incidents.incident(connection, told.incident_id)
    sequence = told.sequence if incident is None else max(incident.version, told.sequence)
    resolved_ms = None if incident is None else incident.resolved_at_ms
    return msgspec.structs.replace(
        told,
        id=notification_id(due.output, f"{told.incident_id}/end", sequence),
        kind=Kind.RESOLVED,
        sequence=sequence,
        created_at_ms=now_ms,
        resolved_at_ms=now_ms if resolved_ms is None else resolved_ms,
        reason=OVER,
    )


def _known(connection: Connection, due: Due, now_ms: int, *, failing_ms: int) -> Known:
    told = due.notification
    return Known(
        silenced_until_ms=silenced_until_ms(silences.active(connection, now_ms=now_ms), told),
        was_told=outbox.was_told(connection, due.output, told.incident_id),
        is_over=outbox.is_resolved_behind(connection, due),
        is_left_open=outbox.is_left_open(connection, due),
        failing_ms=failing_ms,
    )


def _line(sent: Sent) -> Attempt:
    return journal.attempt(
        sent.due.notification,
        sent.due.output,
        sent.outcome,
        at_ms=sent.at_ms,
        duration_ms=sent.duration_ms,
    )
