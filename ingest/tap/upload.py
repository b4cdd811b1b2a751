"""The body of a client's request: read ahead as far as allowed, the rest passes as it comes."""

import asyncio
from collections.abc import AsyncIterator

from starlette.types import Receive

from ingest.tap.room import Room


class GoneError(Exception):
    """The client went away before its request was whole."""


class Upload:
    """Reads one request. What is read ahead is held in `room` until `close`."""

    def __init__(self, receive: Receive, room: Room) -> None:
        self._receive = receive
        self._room = room
        self._read: list[bytes] = []
        self._held = 0
        self._whole = asyncio.Event()
        self.is_gone = False
        """True once the client went away in the middle of its request."""

    def has_no_body(self) -> None:
        """Hear that there is nothing to read."""
        self._whole.set()

    async def read(self, most_bytes: int) -> str | None:
        """Read the whole body; return why it is not whole: body_too_large, memory, or None."""
        while not self._whole.is_set():
            piece = await self._next()
            self._read.append(piece)
            if not self._room.take(len(piece)):
                return "memory"
            self._held += len(piece)
            if self._held > most_bytes:
                return "body_too_large"
        return None

    def body(self) -> bytes:
        """Return what was read, and hold it no more."""
        body = b"".join(self._read)
        self._read.clear()
        return body

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield what was read, and then the rest as it comes."""
        while self._read:
            yield self._read.pop(0)
        while not self._whole.is_set():
            yield await self._next()

    async def gone(self) -> None:
        """Return when the client has gone, or has its answer."""
        await self._whole.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def close(self) -> None:
        """Give back what is held."""
        self._room.give(self._held)
        self._held = 0

    async def _next(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.is_gone = True
            raise GoneError
        if not message.get("more_body", False):
            self._whole.set()
        piece: bytes = message.get("body", b"")
        return piece
