"""A small HTTP server that answers /livez, /readyz and /metrics from a thread of its own."""

import contextlib
import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import ClassVar, TypeAlias
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import MetricsHandler, choose_encoder

from detector.errors import SettingsError
from exporters.settings import MetricsSettings

Probe = Callable[[], Sequence[str]]
"""Returns why not; nothing when all is well. Called in the server's threads."""

Connection: TypeAlias = "socket.socket | tuple[bytes, socket.socket]"
"""As the standard library names it; it is a socket here."""

REQUEST_SECONDS = 5.0
"""A client that sends its request slower than this is dropped: probes take milliseconds."""

MOST_CONNECTIONS = 64
"""Connections at once, each with a thread. One more ends the oldest: who came last may be a probe,
and what stays open for long is none."""

CONNECTION_SECONDS = 15.0
"""How long a connection may last: a scrape takes less than a second, and comes anew."""

POLL_SECONDS = 0.1
"""How often the server looks whether it is to close."""

CLOSE_SECONDS = 2.0
"""How long closing waits for the server's thread."""

_METRICS = "/metrics"


class HealthServer:
    """Serves the probes and the metrics of one process until it is closed.

    200 when a probe has nothing to say against it, else 503; the JSON body says why.
    Raises SettingsError if the address cannot be listened on.
    """

    def __init__(
        self,
        settings: MetricsSettings,
        *,
        registry: CollectorRegistry,
        probes: Mapping[str, Probe],
    ) -> None:
        handler = type("_Bound", (_Handler,), {"registry": registry, "probes": dict(probes)})
        try:
            self._server = _server_class(settings)((settings.host, settings.port), handler)
        except (OSError, UnicodeError) as error:
            raise _cannot_listen(settings, error) from None
        self._thread = Thread(
            target=self._server.serve_forever, args=(POLL_SECONDS,), name="health", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The TCP port that is listened on."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop listening; requests that are being answered are not waited for."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(CLOSE_SECONDS)


class _Server(ThreadingHTTPServer):
    """Ends connections that are too many or too old, so that nobody keeps probes out."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 2 * MOST_CONNECTIONS

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._began: dict[object, float] = {}
        self._lock = Lock()
        super().__init__(address, handler)

    def verify_request(self, request: object, client_address: object) -> bool:  # noqa: ARG002 - its form
        """Take every connection, and note since when it lasts."""
        with self._lock:
            self._began[request] = time.monotonic()
            oldest = list(self._began)[:-MOST_CONNECTIONS]
        _end(oldest)
        return True

    def shutdown_request(self, request: Connection) -> None:
        with self._lock:
            self._began.pop(request, None)
        super().shutdown_request(request)

    def service_actions(self) -> None:
        """Is called several times a second by the thread that accepts connections."""
        before = time.monotonic() - CONNECTION_SECONDS
        with self._lock:
            old = [one for one, began_s in self._began.items() if began_s < before]
        _end(old)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that went away is no event, and a traceback may hold anything."""


def _end(connections: list[object]) -> None:
    """End connections for both sides; their threads see the end of what they read."""
    for one in connections:
        if isinstance(one, socket.socket):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


class _Server6(_Server):
    address_family = socket.AF_INET6


def _server_class(settings: MetricsSettings) -> type[_Server]:
    return _Server6 if ":" in settings.host else _Server


class _Handler(MetricsHandler):
    """Answers one request; `registry` and `probes` are set on a class made for each server."""

    timeout = REQUEST_SECONDS
    server_version = "bleedwatch"
    sys_version = ""
    probes: ClassVar[dict[str, Probe]] = {}

    def do_GET(self) -> None:  # noqa: N802 - the name that the standard library calls
        try:
            path = urlsplit(self.path).path
            choose_encoder(self.headers.get("Accept") or "")
        except (ValueError, TypeError):  # the library compares what it takes for a version
            reason = "the path or the Accept header cannot be read"
            self._answer(HTTPStatus.BAD_REQUEST, [reason])
            return
        if path == _METRICS:
            super().do_GET()
        elif path in self.probes:
            reasons = _reasons(self.probes[path])
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK, reasons)
        else:
            known = ", ".join([*self.probes, _METRICS])
            self._answer(HTTPStatus.NOT_FOUND, [f"no such path; there are {known}"])

    def _answer(self, status: HTTPStatus, reasons: list[str]) -> None:
        body = json.dumps({"ok": not reasons, "reasons": reasons}).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _reasons(probe: Probe) -> list[str]:
    """Ask a probe; one that breaks is a reason, without its message, which may hold anything."""
    try:
        return list(probe())
    except Exception as error:  # noqa: BLE001 - a probe that breaks must not look like a dead host
        return [f"the probe failed ({type(error).__name__}); this is a bug in bleedwatch"]


def _cannot_listen(settings: MetricsSettings, error: Exception) -> SettingsError:
    reason = getattr(error, "strerror", None) or str(error)
    return SettingsError(
        f"cannot listen on {settings.host}:{settings.port}: {reason.lower()}",
        where="metrics.port",
        hint="set metrics.host and metrics.port to an address of this machine and a free port",
    )
