"""Serves the port of a sidecar from a thread of its own."""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from typing import Final

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from detector.errors import SettingsError
from ingest.push.settings import PushSettings

HEAD_BYTES: Final = 16 * 1024
"""Largest head of a request."""

KEEP_ALIVE_S: Final = 30
"""How long a silent connection is kept; gateways push more often."""

CLOSE_S: Final = 5.0
"""How long closing waits for requests that are being answered."""


class _Protocol(H11Protocol):
    """Closes a connection whose request has no whole head in time; uvicorn waits for ever."""

    head_s = 10.0
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def _watch_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._forget_head()
        elif self._head_timer is None:  # further bytes of a head give it no more time
            self._head_timer = self.loop.call_later(self.head_s, self.transport.close)

    def _forget_head(self) -> None:
        timer, self._head_timer = self._head_timer, None
        if timer is not None:
            timer.cancel()


class PushServer:
    """Listens until it is closed. Raises SettingsError if the address cannot be listened on."""

    def __init__(self, app: ASGIApp, settings: PushSettings) -> None:
        self._is_closed = False
        self._socket = _listening(settings)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=type("_Bound", (_Protocol,), {"head_s": settings.read_ms / 1000}),
                ws="none",
                lifespan="off",
                log_config=None,
                log_level=logging.CRITICAL,  # a traceback may hold anything
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=settings.connections,
                h11_max_incomplete_event_size=HEAD_BYTES,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=int(CLOSE_S),
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="push", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The TCP port that is listened on."""
        return int(self._socket.getsockname()[1])

    def until(self, stopped: Callable[[], bool]) -> Callable[[], bool]:
        """Return the same; once it says so nothing more is taken, so that the rest can end."""

        def closed() -> bool:
            has_stopped = stopped()
            if has_stopped:
                self.close()
            return has_stopped

        return closed

    def close(self) -> None:
        """Take no more; what is being answered is finished. A second time does nothing."""
        if self._is_closed:
            return
        self._is_closed = self._server.should_exit = True
        self._thread.join(2 * CLOSE_S)
        self._socket.close()


def _listening(settings: PushSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((settings.host, settings.port or 0))
        made.listen()
    except (OSError, UnicodeError) as error:
        made.close()
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise SettingsError(
            f"cannot listen on {settings.host}:{settings.port}: {reason}",
            where="push.port",
            hint="set push.host and push.port to an address of this machine and a free port",
        ) from None
    return made
