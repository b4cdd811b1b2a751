"""Serves the proxy from a thread of its own, and tells whether its event loop turns."""

import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from ingest.http_port import PatientProtocol, listening
from ingest.tap.engine import Engine
from ingest.tap.settings import TapSettings
from ingest.tap.traffic import Traffic
from ingest.tap.upgrade import Upgrade

HEAD_BYTES: Final = 64 * 1024
"""Largest head of a request, as uvicorn allows by itself; engines allow that or more."""

KEEP_ALIVE_S: Final = 75
"""How long a silent connection is kept: longer than load balancers keep theirs (60 s)."""

STALLED_S: Final = 10.0
"""A loop that has not turned for so long hangs: no step of it takes a second."""


class TapServer:
    """Listens until it is closed. Raises SettingsError if the address cannot be listened on."""

    def __init__(
        self,
        app: ASGIApp,
        engine: Engine,
        traffic: Traffic,
        settings: TapSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._turned_s = clock()
        self._drain_s = settings.drain_ms / 1000
        self._socket = listening(settings.host, settings.port, section="tap")
        head_s = settings.head_ms / 1000
        self._server = _Server(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=type("_Bound", (PatientProtocol,), {"head_s": head_s}),
                ws=type("_Bound", (Upgrade,), {"engine": engine, "traffic": traffic}),
                lifespan="off",
                log_config=None,
                log_level=logging.CRITICAL,  # a traceback may hold anything
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                limit_concurrency=settings.connections,
                h11_max_incomplete_event_size=HEAD_BYTES,
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=round(self._drain_s),
            ),
            self._turn,
            engine,
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="tap", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The TCP port that is listened on."""
        return int(self._socket.getsockname()[1])

    def not_live(self) -> list[str]:
        """Return why the process should be restarted."""
        age_s = self._clock() - self._turned_s
        if not self._thread.is_alive() and not self._server.should_exit:
            return ["the proxy has ended"]
        return [] if age_s <= STALLED_S else [f"the proxy has not turned for {age_s:.0f} s"]

    def not_ready(self) -> list[str]:
        """Return why no request should come here."""
        return ["the proxy is ending"] if self._server.should_exit else self.not_live()

    def close(self) -> None:
        """Take no more; requests in flight are waited for as long as is set."""
        self._server.should_exit = True
        self._thread.join(self._drain_s + 1)
        self._socket.close()

    def _turn(self) -> None:
        self._turned_s = self._clock()


class _Server(uvicorn.Server):
    """Tells each turn of its loop, ten times a second, and lets go of the engine at last."""

    def __init__(self, config: uvicorn.Config, on_turn: Callable[[], None], engine: Engine) -> None:
        super().__init__(config)
        self._on_turn = on_turn
        self._engine = engine

    async def on_tick(self, counter: int) -> bool:
        self._on_turn()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        await self._engine.close()
