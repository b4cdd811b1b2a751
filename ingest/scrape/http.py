"""One GET request with a bound on everything: time, size, redirects, encodings.

The engine may be hung, hostile or something else altogether. Proxies of the environment are not
used: an engine is a neighbour.
"""

import http.client
import re
import socket
import ssl
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from detector.errors import ScrapeError, SettingsError

MAX_TOKEN_BYTES: Final = 8192
"""A larger file is not an API key; headers end there in most servers."""

_TOKEN: Final = re.compile(r"[\x21-\x7e]+")
_READ_BYTES: Final = 64 * 1024

_STATUS_REASONS: Final = {401: "unauthorized", 403: "unauthorized", 404: "not_found"}

REASONS: Final = (
    "unreachable",
    "timed_out",
    "tls",
    "redirected",
    "unauthorized",
    "not_found",
    "status",
    "too_large",
    "encoded",
    "not_text",
    "malformed",
    "unrecognized",
)
"""Why a scrape can fail: the words of ScrapeError."""


class Answer(NamedTuple):
    """The body of an answer, and its `Date` header, empty without one."""

    body: str
    date: str


class Endpoint:
    """The server of an engine. `timeout_s` and `max_bytes` hold for each answer.

    For one thread at a time.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float,
        max_bytes: int,
        token_file: str | None = None,
        ca_file: str | None = None,
    ) -> None:
        parts = urlsplit(url)
        self.host = parts.hostname or ""
        self.is_secure = parts.scheme == "https"
        self.port = parts.port or (443 if self.is_secure else 80)
        self.name = f"{self.host}:{self.port}"
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._token_file = token_file
        self._context = (
            authorities(ca_file, where=f"scrape.targets.ca_file={ca_file}")
            if self.is_secure
            else None
        )

    def get(self, path: str) -> Answer:
        """Return the answer to GET `path`: 200, text, whole.

        Raises ScrapeError for everything else, SettingsError for a token file that cannot be used.
        """
        where = f"{self.name}{path}"
        headers = {"Accept": "application/json, text/plain", "Accept-Encoding": "identity"}
        if self._token_file is not None:
            headers["Authorization"] = f"Bearer {read_token(self._token_file)}"
        connection = self._connection()
        late = threading.Event()
        try:
            with _deadline(connection, self._timeout_s, late) as connected:
                connected()
                connection.request("GET", path, headers=headers)
                with connection.getresponse() as response:
                    _check(response, where)
                    body = self._body(response, where, late)
                    return Answer(body, response.getheader("Date", ""))
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise _failure(error, where, is_late=late.is_set()) from None
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if self._context is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=self._timeout_s)
        return http.client.HTTPSConnection(
            self.host, self.port, timeout=self._timeout_s, context=self._context
        )

    def _body(self, response: http.client.HTTPResponse, where: str, late: threading.Event) -> str:
        content = bytearray()
        while chunk := response.read1(_READ_BYTES):
            content += chunk
            if len(content) > self._max_bytes:
                raise ScrapeError(
                    "too_large",
                    f"the answer is larger than {self._max_bytes:,} bytes",
                    where=where,
                    hint="raise scrape.max_body_bytes if the engine has so many series",
                )
        if late.is_set():
            raise TimeoutError
        length = response.getheader("Content-Length")
        if length is not None and length.strip() != str(len(content)):
            raise ScrapeError("malformed", "the answer is cut short", where=where)
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise ScrapeError("not_text", "the answer is not text", where=where) from None


def read_token(file: str) -> str:
    """Return the API key of a file. Its mode must keep others out; the error never shows it."""
    where = "scrape.targets.token_file"
    try:
        with Path(file).open("rb") as stream:
            mode = stat.S_IMODE(Path(file).stat().st_mode)
            first = stream.read(MAX_TOKEN_BYTES + 1).decode().splitlines()[0].strip()
    except (OSError, ValueError, IndexError) as error:
        reason = getattr(error, "strerror", None) or "it holds no text"
        raise SettingsError(
            f"the API key cannot be read: {reason.lower()}",
            where=where,
            hint="name a file with the key on its first line",
        ) from None
    if mode & stat.S_IRWXO:
        raise SettingsError(
            f"others may use the file (mode {mode:04o})", where=where, hint="chmod o= the file"
        )
    if not _TOKEN.fullmatch(first) or len(first) >= MAX_TOKEN_BYTES:
        raise SettingsError(
            "the file does not hold an API key", where=where, hint="write it on the first line"
        )
    return first


@contextmanager
def _deadline(
    connection: http.client.HTTPConnection, seconds: float, late: threading.Event
) -> Iterator[Callable[[], None]]:
    """End the connection after so long: a time-out of a socket starts anew with every byte.

    Gives what connects; the socket is remembered, since a response takes it from its connection.
    """
    sockets: list[socket.socket] = []

    def connected() -> None:
        connection.connect()
        sockets.append(connection.sock)

    def end() -> None:
        late.set()
        for sock in sockets:
            with suppress(OSError):
                # that of the plain socket: the one of TLS would take its state from the reader
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield connected
    finally:
        timer.cancel()


def _check(response: http.client.HTTPResponse, where: str) -> None:
    status = response.status
    if 300 <= status < 400:
        raise ScrapeError(
            "redirected",
            f"the answer is a redirect (status {status}), which is not followed",
            where=where,
            hint="name the engine itself in scrape.targets, not a proxy before it",
        )
    if status != http.client.OK:
        reason = _STATUS_REASONS.get(status, "status")
        hint = "set token_file of the target" if reason == "unauthorized" else ""
        raise ScrapeError(reason, f"the answer has status {status}", where=where, hint=hint)
    encoding = response.getheader("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise ScrapeError(
            "encoded",
            "the answer is compressed, which was not asked for",
            where=where,
            hint="name the engine itself in scrape.targets, not a proxy before it",
        )


def authorities(ca_file: str | None, *, where: str) -> ssl.SSLContext:
    """Return whom to trust: those of a file, else those of the system."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ValueError):
        raise SettingsError(
            "the authorities cannot be read",
            where=where,
            hint="name a PEM file of certificates",
        ) from None


def _failure(error: Exception, where: str, *, is_late: bool) -> ScrapeError:
    """Return what went wrong, without the text of the error, which may quote an answer."""
    if is_late or isinstance(error, TimeoutError):
        hint = "raise scrape.timeout_ms if the engine is slow to answer"
        return ScrapeError("timed_out", "no whole answer in time", where=where, hint=hint)
    if isinstance(error, ssl.SSLError):
        what = "the server's certificate or TLS is not as it must be"
        return ScrapeError("tls", what, where=where, hint="check ca_file and https://")
    if isinstance(error, OSError):
        reason = (error.strerror or type(error).__name__).lower()
        hint = "check that the engine runs and scrape.targets names its port"
        return ScrapeError("unreachable", f"nothing answers: {reason}", where=where, hint=hint)
    hint = "check that scrape.targets names an HTTP port"
    return ScrapeError("malformed", "the answer is not HTTP", where=where, hint=hint)
