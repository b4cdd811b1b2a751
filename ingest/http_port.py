"""What every port shares: a bound socket, and an end to clients that keep it from others."""

import asyncio
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from detector.errors import SettingsError


class PatientProtocol(H11Protocol):
    """Closes a connection whose request has no whole head in time; uvicorn waits for ever.

    Where there are too many connections, the one that has asked for nothing for the longest time
    makes room for a new one: uvicorn would refuse everybody until silent ones give up.
    """

    head_s = 10.0
    _head_timer: asyncio.TimerHandle | None = None
    _heard_s = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first head."""
        super().connection_made(transport)
        self._heard_s = self.loop.time()
        self._make_room()
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a head that has begun."""
        super().data_received(data)
        self._heard_s = self.loop.time()
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._forget_head()
        super().connection_lost(exc)

    def _make_room(self) -> None:
        most = self.limit_concurrency
        if most is None or len(self.connections) < most:
            return
        silent = [
            one
            for one in self.connections
            if isinstance(one, PatientProtocol)
            and one is not self
            and not one.transport.is_closing()
            and (one.cycle is None or one.cycle.response_complete)
        ]
        if silent:
            ended = min(silent, key=lambda one: one._heard_s)
            ended.transport.close()
            self.connections.discard(ended)  # asyncio ends it a little later

    def _watch_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._forget_head()
        elif self._head_timer is None:  # further bytes of a head give it no more time
            self._head_timer = self.loop.call_later(self.head_s, self.transport.close)

    def _forget_head(self) -> None:
        timer, self._head_timer = self._head_timer, None
        if timer is not None:
            timer.cancel()


def listening(host: str, port: int, *, section: str) -> socket.socket:
    """Return a socket that listens; raises SettingsError naming the settings of `section`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small pieces at once only where the protocol is named
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen()
    except (OSError, UnicodeError) as error:
        made.close()
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise SettingsError(
            f"cannot listen on {host}:{port}: {reason}",
            where=f"{section}.port",
            hint=f"set {section}.host and {section}.port to an address of this machine and a free "
            "port",
        ) from None
    return made
