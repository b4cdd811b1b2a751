"""Serves an application from a thread of its own, on a socket that somebody has opened."""

import logging
import socket
import threading
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_BYTES: Final = 16 * 1024
"""Largest head of a request."""

KEEP_ALIVE_S: Final = 30
"""How long a silent connection is kept."""

CONNECTIONS: Final = 256
"""Connections at once; one more ends the one that is silent for longest, or gets 503."""

CLOSE_S: Final = 5.0
"""How long closing waits for requests that are being answered."""


class HttpServer:
    """Listens until it is closed. `protocol` ends clients that never finish a head."""

    def __init__(
        self, app: ASGIApp, listening: socket.socket, *, protocol: type[H11Protocol]
    ) -> None:
        self._socket = listening
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level=logging.CRITICAL,  # a traceback may hold anything
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=CONNECTIONS,
                h11_max_incomplete_event_size=HEAD_BYTES,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=int(CLOSE_S),
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([listening],), name="http", daemon=True
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
