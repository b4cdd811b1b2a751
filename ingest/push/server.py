"""Serves the port of a sidecar from a thread of its own."""

import logging
import threading
from collections.abc import Callable
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from ingest.http_port import PatientProtocol, listening
from ingest.push.settings import PushSettings

HEAD_BYTES: Final = 16 * 1024
"""Largest head of a request."""

KEEP_ALIVE_S: Final = 30
"""How long a silent connection is kept; gateways push more often."""

CLOSE_S: Final = 5.0
"""How long closing waits for requests that are being answered."""


class PushServer:
    """Listens until it is closed. Raises SettingsError if the address cannot be listened on."""

    def __init__(self, app: ASGIApp, settings: PushSettings) -> None:
        self._is_closed = False
        self._socket = listening(settings.host, settings.port or 0, section="push")
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=type("_Bound", (PatientProtocol,), {"head_s": settings.read_ms / 1000}),
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
