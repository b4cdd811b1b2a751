"""A receiver of webhooks over HTTP that does as it is told: takes, refuses, dawdles, breaks off."""

import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import Any, Literal, NamedTuple

Manner = Literal[
    "takes",
    "down",
    "slow",
    "drips",
    "fails",
    "busy",
    "gone",
    "refuses",
    "breaks_off",
    "redirects",
    "floods",
]
"""`down` closes the port; `drips` sends a header byte by byte; `busy` is 429 with Retry-After;
`breaks_off` ends in the middle of the body of a 200; `redirects` to `elsewhere`; `floods` answers
200 with a body without end."""

STATUS: dict[Manner, int] = {
    "takes": 204,
    "slow": 204,
    "fails": 500,
    "busy": 429,
    "gone": 410,
    "refuses": 400,
    "redirects": 307,
}

FLOOD_CHUNKS = 64
"""Of 64 KiB each: far more than a caller should read."""


DRIPS = 60
DRIP_S = 0.05
"""Three seconds in which no two bytes are far apart."""


class Call(NamedTuple):
    """One request as it came. `manner` is how it was answered."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    manner: Manner

    @property
    def id(self) -> str:
        """The idempotency id."""
        return self.headers.get("webhook-id", "")


@dataclass
class Receiver:
    """Answers as `manner` says at that moment, and keeps every call in order.

    `slow_s` is how long `slow` takes, `retry_after` what `busy` asks for. With `certificate`, a PEM
    file of a key and its certificate, it speaks TLS.
    """

    manner: Manner = "takes"
    slow_s: float = 0.5
    retry_after: str = "20"
    elsewhere: str = ""
    certificate: Path | None = None
    calls: list[Call] = field(default_factory=list)
    port: int = 0
    _server: ThreadingTCPServer | None = None
    _thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it listens, with a path of its own."""
        return f"http://127.0.0.1:{self.port}/hook"

    def behave(self, manner: Manner) -> None:
        """Change; the port is closed or opened as needed."""
        if manner == self.manner:
            return
        self.manner = manner
        if manner == "down":
            self.close()
        elif self._server is None:
            self.open()

    def open(self) -> None:
        """Listen; on the same port after the first time."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver._answer(self)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name
                """Say nothing on stderr."""

        class Server(ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A caller that went away is no fault."""

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        if self.certificate is not None:
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(self.certificate)
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Close the port."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
        self._server = None

    def taken(self) -> list[str]:
        """Return the ids of the calls whose answer was given in full, in order."""
        return [call.id for call in self.calls if call.manner == "takes"]

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        manner = self.manner
        length = int(handler.headers.get("content-length", "0"))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        body = handler.rfile.read(length)
        self.calls.append(Call(handler.path, headers, body, manner))
        if manner == "slow":
            time.sleep(self.slow_s)
        with suppress(OSError):
            if manner in STATUS:
                self._say(handler, manner)
            else:
                _say_too_little_or_too_much(handler, manner)

    def _say(self, handler: BaseHTTPRequestHandler, manner: Manner) -> None:
        handler.send_response(STATUS[manner])
        if manner == "busy":
            handler.send_header("Retry-After", self.retry_after)
        if manner == "redirects":
            handler.send_header("Location", self.elsewhere)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


def _say_too_little_or_too_much(handler: BaseHTTPRequestHandler, manner: Manner) -> None:
    handler.send_response(200)
    if manner == "drips":
        handler.flush_headers()
        for _ in range(DRIPS):
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(DRIP_S)
        return
    if manner == "breaks_off":
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"a beginning")
        handler.close_connection = True
        return
    handler.send_header("Content-Length", str(FLOOD_CHUNKS * 65_536))
    handler.end_headers()
    for _ in range(FLOOD_CHUNKS):
        handler.wfile.write(b"x" * 65_536)


@contextmanager
def receiver(manner: Manner = "takes", **settings: Any) -> Iterator[Receiver]:
    """Give a receiver that listens."""
    made = Receiver(manner=manner, **settings)
    made.open()
    try:
        yield made
    finally:
        made.close()
