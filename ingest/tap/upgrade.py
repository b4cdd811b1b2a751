"""A connection that becomes something else than HTTP, as a WebSocket: bytes pass both ways."""

import asyncio
import ssl
from typing import Any, ClassVar, Protocol, cast

from ingest.tap.traffic import Traffic


class Address(Protocol):
    """Where the engine listens."""

    host: str
    port: int
    tls: ssl.SSLContext | None


class _Side(asyncio.Protocol):
    """One end of a tunnel: what it reads the other end writes; neither runs ahead."""

    def __init__(self) -> None:
        self.other: _Side | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def eof_received(self) -> bool:
        self._end_other()
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - of the interface
        self._end_other()

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def _end_other(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


class Upgrade(_Side):
    """The client's end, in the place of the server's own WebSocket protocol.

    `engine` and `traffic` are set on a class made for each server.
    """

    engine: ClassVar[Address]
    traffic: ClassVar[Traffic]

    def __init__(self, config: Any, server_state: Any, app_state: Any) -> None:  # noqa: ANN401, ARG002
        super().__init__()
        self._connections: set[Any] = server_state.connections
        self._first = bytearray()
        self._dialling: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take over a connection; it is not read until the engine has accepted one."""
        super().connection_made(transport)
        self._connections.add(self)
        self.traffic.upgraded += 1
        if self.transport is not None:
            self.transport.pause_reading()
        self._dialling = asyncio.ensure_future(self._dial())

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, or keep the head of the request until there is where to."""
        if self.other is None:
            self._first += data
        else:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and end the engine's."""
        self._connections.discard(self)
        if self._dialling is not None:
            self._dialling.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """End when the server ends."""
        if self.transport is not None:
            self.transport.close()

    async def _dial(self) -> None:
        back = _Side()
        loop = asyncio.get_running_loop()
        try:
            await loop.create_connection(
                lambda: back, self.engine.host, self.engine.port, ssl=self.engine.tls
            )
        except OSError:
            self.traffic.engine_errors["unreachable"] += 1
            self.shutdown()
            return
        self.other, back.other = back, self
        if back.transport is not None:
            back.transport.write(bytes(self._first))
        self._first.clear()
        if self.transport is not None:
            self.transport.resume_reading()
