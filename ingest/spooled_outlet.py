"""An outlet that takes messages while the broker is away: they wait on disk, in order.

While all is well messages go to the publisher at once. As soon as one is not acknowledged in time
it goes to the spool, and so does everything behind it until the spool has been sent again.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, NamedTuple

from detector.errors import BleedwatchError, BrokerError
from ingest.broker import Message, Publisher
from ingest.connection import Connection
from ingest.outlet import SPOOLED
from ingest.partitioning import message_bytes
from ingest.spool import Spool
from ingest.spool_counts import SpoolCounts
from ingest.spool_settings import SpoolSettings

_log = logging.getLogger(__name__)

TICK_S: Final = 0.1
"""How often is looked whether a message has waited too long, while any waits."""

IDLE_S: Final = 1.0
"""How often is looked whether it is time to connect again, while none waits."""

HELD_BYTES: Final = 64 * 2**20
"""Taken and not safe yet at most; a sidecar stops reading at a fourth of that."""

CLOSE_S: Final = 3.0
"""How long closing goes on sending what is in the spool."""


@dataclass(slots=True)
class _Taken:
    """A message that was taken and is not safe yet; `sent` is its way to the broker."""

    message: Message
    safe: "Future[int]"
    since_s: float
    sent: "Future[int] | None" = None


class _Out(NamedTuple):
    """A message of the spool on its way; `place` names it there."""

    place: tuple[int, int]
    sent: "Future[int]"
    size: int
    since_s: float


class SpooledOutlet:
    """An Outlet over a publisher that `connect` makes, again and again if need be.

    `send` never waits. Its future gives an offset, or SPOOLED once the message is on disk; it
    raises BrokerError when there is no room. Closes the spool, too.
    """

    def __init__(
        self,
        connect: Callable[[], Publisher],
        spool: Spool,
        settings: SpoolSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spool = spool
        self._settings = settings
        self._clock = clock
        self._changed = threading.Condition()
        self._news = False
        self._queue: deque[_Taken] = deque()
        self._held_bytes = 0
        self._held = 0
        self._failed = 0
        self._is_closing = False
        self._is_behind = False
        self._broken: BaseException | None = None
        self._direct: deque[_Taken] = deque()
        self._out: deque[_Out] = deque()
        self._out_bytes = 0
        self._delivered: dict[tuple[int, int], Future[int]] = {}
        self._connection = Connection(connect, on_change=self._tell, clock=clock)
        self._connection.publisher()  # begins to connect
        self._thread = threading.Thread(target=self._run, name="outlet", daemon=True)
        self._thread.start()

    @property
    def counts(self) -> SpoolCounts:
        """What the spool holds and has done."""
        return self._spool.counts

    @property
    def problem(self) -> BleedwatchError | None:
        """Why messages go to the spool; None while all is well."""
        if self._connection.problem is None and self._is_behind:
            return BrokerError(
                f"nothing was acknowledged within {self._settings.after_ms} ms",
                where="broker",
                hint="messages wait in the spool; see whether it is up",
            )
        return self._connection.problem

    def send(self, message: Message) -> "Future[int]":
        """Take a message. Raises the error of a setting that makes connecting impossible."""
        fatal = self._connection.fatal or self._broken
        if fatal is not None:
            raise fatal
        future: Future[int] = Future()
        future.set_running_or_notify_cancel()
        with self._changed:
            refusal = self._refusal()
            if refusal is None:
                self._queue.append(_Taken(message, future, self._clock()))
                self._held += 1
                self._held_bytes += message_bytes(message)
                self._news = True
                self._changed.notify_all()
            else:
                self._failed += 1
        if refusal is not None:
            future.set_exception(refusal)
        return future

    def flush(self, timeout_s: float) -> None:
        """Wait until everything taken is safe.

        Raises BrokerError if it is not in time, or if a message was refused since the last flush.
        """
        with self._changed:
            in_time = self._changed.wait_for(lambda: not self._held or self._broken, timeout_s)
            failed, self._failed = self._failed, 0
        if self._broken is not None:
            raise self._broken
        if failed or not in_time:
            raise BrokerError(
                f"{failed} messages were refused" if in_time else "not all is safe in time",
                where="spool",
                hint="the future of each message says why",
            )

    def close(self) -> None:
        """Send for a few seconds what can be sent, keep the rest on disk, and let go."""
        with self._changed:
            self._is_closing = True
        self._tell()
        self._thread.join()
        self._connection.close()
        self._settle()
        self._spool.close()

    def _refusal(self) -> BrokerError | None:
        if self._is_closing:
            return BrokerError("the outlet is closed", where="spool", hint="open another")
        if self._held_bytes >= HELD_BYTES:
            return BrokerError(
                "too much waits to be safe",
                where="spool",
                hint="the disk of spool.folder is too slow for what comes",
            )
        return None

    def _run(self) -> None:
        try:
            while not self._is_closing:
                self._turn()
            self._end()
        except BaseException as error:
            self._broken = error  # whoever sends next hears of it
            self._tell()
            raise

    def _end(self) -> None:
        """Send on for a moment, then put what is not acknowledged on disk."""
        until_s = self._clock() + CLOSE_S
        while self._clock() < until_s and self._is_flowing() and self._has_work():
            self._turn()
        self._put_aside()
        self._to_spool(self._taken(0.0))

    def _has_work(self) -> bool:
        return bool(self._queue or self._direct or self._out) or not self._spool.is_drained

    def _turn(self) -> None:
        """Hear what is acknowledged, put away what waits too long, send what can be sent."""
        taken = self._taken(TICK_S if self._direct or self._out else IDLE_S)
        publisher = self._connection.publisher()
        error = self._settle()
        if error is not None:
            _log.warning("the broker takes nothing, messages go to the spool: %s", error)
            self._connection.lost(error)
            publisher = None
            self._read_again()
            self._to_spool(self._direct)
            self._direct.clear()
        elif self._direct and not self._is_flowing():
            self._put_aside()
        if publisher is not None and self._is_flowing() and self._spool.is_drained:
            self._send(publisher, taken)
        else:
            self._to_spool(taken)
        if publisher is not None:
            self._drain(publisher)
        self._is_behind = publisher is not None and not self._is_flowing()

    def _taken(self, wait_s: float) -> list[_Taken]:
        with self._changed:
            self._changed.wait_for(lambda: self._news, wait_s)
            self._news = False
            taken = list(self._queue)
            self._queue.clear()
        return taken

    def _tell(self) -> None:
        with self._changed:
            self._news = True
            self._changed.notify_all()

    def _is_late(self, since_s: float) -> bool:
        return self._clock() - since_s >= self._settings.after_ms / 1000

    def _is_flowing(self) -> bool:
        """Tell whether what was sent is acknowledged in time."""
        return self._connection.publisher() is not None and not (
            (self._direct and self._is_late(self._direct[0].since_s))
            or (self._out and self._is_late(self._out[0].since_s))
        )

    def _settle(self) -> BrokerError | None:
        """Hear what is acknowledged; return why a message was not."""
        error: BrokerError | None = None
        waiting: deque[_Taken] = deque()
        for one in self._direct:
            if one.sent is None or not one.sent.done():
                waiting.append(one)
            elif (failure := one.sent.exception()) is None:
                self._connection.works()
                self._is_safe(one, one.sent.result())
            else:
                error = error or _ours(failure)
                waiting.append(one)
        self._direct = waiting
        while self._out and self._out[0].sent.done():
            failure = self._out[0].sent.exception()
            if failure is not None:
                return _ours(failure)
            self._out_bytes -= self._out.popleft().size
            self._spool.acknowledge()
            self._connection.works()
        return error

    def _put_aside(self) -> None:
        """Spool what the publisher still has: it goes on trying, and the disk has it meanwhile.

        Messages go to the publisher directly only while the spool has been read to its end. So
        these are what is read from it next, and they count as sent already.
        """
        aside = self._to_spool(self._direct)
        self._direct.clear()
        for one in aside:
            message = self._spool.next()
            if message != one.message or one.sent is None:  # a tiny spool has dropped it already
                self._read_again()
                return
            self._under_way(one.sent, message_bytes(message), one.since_s)

    def _send(self, publisher: Publisher, taken: list[_Taken]) -> None:
        for one in taken:
            one.sent = publisher.send(one.message)
            one.sent.add_done_callback(lambda _: self._tell())
            self._direct.append(one)

    def _drain(self, publisher: Publisher) -> None:
        """Send what is in the spool, as much as may be under way at once."""
        while self._out_bytes < self._settings.window_bytes:
            message = self._spool.next()
            if message is None:
                return
            sent = self._delivered.pop(self._spool.place, None)
            if sent is None:
                sent = publisher.send(message)
                sent.add_done_callback(lambda _: self._tell())
            self._under_way(sent, message_bytes(message), self._clock())

    def _under_way(self, sent: "Future[int]", size: int, since_s: float) -> None:
        self._out.append(_Out(self._spool.place, sent, size, since_s))
        self._out_bytes += size

    def _read_again(self) -> None:
        """Begin at the first message that is not acknowledged; what is behind it and is, stays."""
        self._delivered = {
            out.place: out.sent
            for out in self._out
            if out.sent.done() and out.sent.exception() is None
        }
        self._spool.rewind()
        self._out.clear()
        self._out_bytes = 0

    def _to_spool(self, taken: Iterable[_Taken]) -> list[_Taken]:
        """Put messages on disk; return those that are safe there."""
        added: list[_Taken] = []
        for one in taken:
            try:
                self._spool.append(one.message)
                added.append(one)
            except BrokerError as error:
                self._is_refused(one, error)
        try:
            self._spool.sync()
        except BrokerError as error:
            for one in added:
                self._is_refused(one, error)
            return []
        for one in added:
            self._is_safe(one, SPOOLED)
        return added

    def _is_safe(self, one: _Taken, offset: int) -> None:
        self._let_go(one, failed=False)
        one.safe.set_result(offset)

    def _is_refused(self, one: _Taken, error: BrokerError) -> None:
        self._let_go(one, failed=True)
        one.safe.set_exception(error)

    def _let_go(self, one: _Taken, *, failed: bool) -> None:
        with self._changed:
            self._held -= 1
            self._held_bytes -= message_bytes(one.message)
            self._failed += failed
            self._changed.notify_all()


def _ours(error: BaseException) -> BrokerError:
    """Return what a publisher says by its contract; anything else is a bug and is raised."""
    if not isinstance(error, BrokerError):
        raise error
    return error
