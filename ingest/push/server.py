"""Serves the port of a sidecar from a thread of its own."""

import logging
import socket
import threading
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from detector.errors import SettingsError
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
        self._socket = _listening(settings)
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                loop="asyncio",
                http="h11",
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

    def close(self) -> None:
        """Take no more; what is being answered is finished."""
        self._server.should_exit = True
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
