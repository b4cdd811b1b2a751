"""A Publisher over HTTP, to a `run all` that listens: in order, several messages a request.

A thread posts what was sent as soon as the answer to the request before is there.
"""

import http.client
import ssl
import threading
from collections import deque
from concurrent.futures import Future
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from detector.errors import BrokerError, SettingsError
from ingest.broker import Message
from ingest.http_settings import HttpSettings
from ingest.in_flight import InFlight
from ingest.partitioning import message_bytes
from ingest.push.token import read_token

PATH: Final = "/v1/messages"

POST_BYTES: Final = 4 * 2**20
"""Messages of one request: half of what a receiver takes unless set otherwise."""

CLOSE_TIMEOUT_S: Final = 5.0
"""How long closing waits for what is under way."""

_MOST_READ: Final = 65_536
"""Bytes of an answer that are read: a problem has some hundred."""

_FAULTS: Final = (OSError, http.client.HTTPException, ValueError)


class _Queued(NamedTuple):
    message: Message
    size: int
    future: "Future[int]"


class HttpPublisher:
    """A Publisher to the receiver at `settings.url`. Any thread may send.

    The future of a message gives a number that goes up; it raises BrokerError when the receiver did
    not take it, and then whatever was sent behind it may have arrived.
    Raises BrokerError if the receiver does not answer, SettingsError for a file that is unusable.
    """

    def __init__(self, settings: HttpSettings) -> None:
        self._where = settings.url or ""
        self._timeout_s = settings.timeout_ms / 1000
        self._headers = _headers(settings)
        self._connection = _connection(settings)
        self._in_flight = InFlight(settings.in_flight_bytes)
        self._changed = threading.Condition()
        self._queue: deque[_Queued] = deque()
        self._under_way = 0
        self._failed = 0
        self._acknowledged = 0
        self._is_closed = False
        self._ask("GET", "/livez", None)
        self._thread = threading.Thread(target=self._run, name="http", daemon=True)
        self._thread.start()

    def send(self, message: Message) -> "Future[int]":
        """Queue a message. Blocks while the bound on unacknowledged bytes is reached."""
        future: Future[int] = Future()
        future.set_running_or_notify_cancel()
        size = message_bytes(message)
        self._in_flight.enter(size)
        with self._changed:
            if not self._is_closed:
                self._queue.append(_Queued(message, size, future))
                self._under_way += 1
                self._changed.notify_all()
                return future
            self._failed += 1
        self._in_flight.leave(size)
        future.set_exception(
            BrokerError("the publisher is closed", where=self._where, hint="open another")
        )
        return future

    def flush(self, timeout_s: float) -> None:
        """Wait until everything sent is acknowledged.

        Raises BrokerError if it is not in time, or if a message has failed since the last flush.
        """
        with self._changed:
            in_time = self._changed.wait_for(lambda: not self._under_way, timeout_s)
            failed, self._failed = self._failed, 0
        if failed or not in_time:
            raise BrokerError(
                f"{failed} messages were not acknowledged" if in_time else "not all in time",
                where=self._where,
                hint="the future of each says why",
            )

    def close(self) -> None:
        """Flush what can be flushed within a few seconds; the rest fails."""
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way, CLOSE_TIMEOUT_S)
            self._is_closed = True
            left = list(self._queue)
            self._queue.clear()
            self._changed.notify_all()
        error = BrokerError("the publisher was closed", where=self._where, hint="open another")
        for one in left:
            self._done(one, error)
        self._thread.join(self._timeout_s)
        self._connection.close()

    def _run(self) -> None:
        while batch := self._batch():
            error: BrokerError | None = None
            try:
                body = msgspec.msgpack.encode([one.message for one in batch])
                self._ask("POST", PATH, body)
            except BrokerError as refused:
                error = refused
            for one in batch:
                self._done(one, error)

    def _batch(self) -> list[_Queued]:
        """Wait for messages and return what fits into one request; [] once closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._is_closed)
            batch: list[_Queued] = []
            size = 0
            while self._queue and (not batch or size + self._queue[0].size <= POST_BYTES):
                batch.append(self._queue.popleft())
                size += batch[-1].size
            return batch

    def _done(self, one: _Queued, error: BrokerError | None) -> None:
        self._in_flight.leave(one.size)
        with self._changed:
            self._under_way -= 1
            self._failed += error is not None
            self._acknowledged += error is None
            number = self._acknowledged
            self._changed.notify_all()
        if error is None:
            one.future.set_result(number)
        else:
            one.future.set_exception(error)

    def _ask(self, method: str, path: str, body: bytes | None) -> None:
        """Send one request; raises BrokerError unless the answer is 2xx."""
        was_open = self._connection.sock is not None
        try:
            status, said = self._answer(method, path, body)
        except _FAULTS as error:
            if was_open:  # the receiver lets go of connections that are silent for long
                self._ask(method, path, body)
                return
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise BrokerError(
                f"the receiver does not answer: {str(reason).lower()}",
                where=self._where,
                hint="see whether bleedwatch run all --listen runs there, and check http.url",
            ) from None
        if not 200 <= status < 300:
            raise refusal(status, said, self._where)

    def _answer(self, method: str, path: str, body: bytes | None) -> tuple[int, bytes]:
        try:
            self._connection.request(method, path, body, self._headers)
            answer = self._connection.getresponse()
            said = answer.read(_MOST_READ)
            if answer.will_close or not answer.isclosed():
                self._connection.close()
        except _FAULTS:
            self._connection.close()
            raise
        return answer.status, said


class _Problem(msgspec.Struct):
    detail: str = ""


def refusal(status: int, said: bytes, where: str) -> BrokerError:
    """Return the error that an answer is, with what the receiver says if that is a sentence."""
    try:
        detail = msgspec.json.decode(said, type=_Problem).detail
    except (msgspec.DecodeError, RecursionError):
        detail = ""
    shown = detail[:200] if detail.isprintable() else ""
    return BrokerError(
        f"the receiver answers {status}" + (f": {shown}" if shown else ""),
        where=where,
        hint="check http.token_file and kafka.topic_prefix, which both sides share, and its log",
    )


def _headers(settings: HttpSettings) -> dict[str, str]:
    token = read_token(settings.token_file, where="http.token_file")
    made = {"Content-Type": "application/msgpack"}
    if token is not None:
        made["Authorization"] = f"Bearer {token.decode()}"
    return made


def _connection(settings: HttpSettings) -> http.client.HTTPConnection:
    parts = urlsplit(settings.url or "")
    host, timeout_s = parts.hostname or "", settings.timeout_ms / 1000
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=timeout_s)
    try:
        context = ssl.create_default_context(cafile=settings.ca_file)
    except OSError as error:
        raise SettingsError(
            f"the authorities cannot be read: {(error.strerror or 'not PEM').lower()}",
            where="http.ca_file",
            hint="name a PEM file that this user may read",
        ) from None
    return http.client.HTTPSConnection(host, parts.port, timeout=timeout_s, context=context)
