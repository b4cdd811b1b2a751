"""The engine as a server: one connection for each request, closed as soon as nobody needs it.

On loopback a connection costs a tenth of a millisecond. None is used twice: one that the engine is
just closing as idle would fail a request that cannot be sent again.
"""

import ssl
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from detector.errors import EngineError
from ingest.tap.heads import HeaderList

HEAD_BYTES: Final = 64 * 1024
"""Largest line, and largest header, of an answer: as much as of a request."""

_BY_ITSELF: Final = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that the client would add; a proxy adds none."""


@dataclass(frozen=True, slots=True, repr=False)
class EngineAnswer:
    """The head of an answer, and its body as it comes."""

    status: int
    headers: HeaderList
    pieces: AsyncIterator[bytes]


class Engine:
    """Sends requests to one engine. `connect_s`: how long it may take to accept a connection.

    For one event loop.
    """

    def __init__(self, url: str, *, connect_s: float) -> None:
        parts = urlsplit(url)
        self.host = parts.hostname or ""
        is_secure = parts.scheme == "https"
        self.port = parts.port or (443 if is_secure else 80)
        self.tls = ssl.create_default_context() if is_secure else None
        self._base = f"{parts.scheme}://{parts.netloc}"
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_s)
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def ask(
        self,
        method: str,
        target: str,
        headers: HeaderList,
        body: bytes | AsyncIterable[bytes] | None,
    ) -> AsyncIterator[EngineAnswer]:
        """Send a request and give its answer; the connection ends with the block.

        Raises EngineError "unreachable" or "broken"; reading the pieces raises "broken".
        """
        if self._session is None:
            self._session = self._new_session()
        try:
            response = await self._session.request(
                method,
                URL(self._base + target, encoded=True),
                headers=CIMultiDict(
                    (key.decode("latin-1"), value.decode("latin-1")) for key, value in headers
                ),
                data=body,
                allow_redirects=False,
            )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
            raise EngineError("unreachable", "the engine does not answer") from None
        except (aiohttp.ClientError, OSError, ValueError):
            raise EngineError("broken", "the engine broke off") from None
        try:
            yield EngineAnswer(response.status, list(response.raw_headers), _pieces(response))
        finally:
            response.close()

    async def close(self) -> None:
        """Let go of all connections."""
        if self._session is not None:
            await self._session.close()

    def _new_session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=True, ssl=self.tls or True),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=self._timeout,
            auto_decompress=False,
            skip_auto_headers=_BY_ITSELF,
            max_line_size=HEAD_BYTES,
            max_field_size=HEAD_BYTES,
        )


async def _pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for piece in response.content.iter_any():
            yield piece
    except (aiohttp.ClientError, OSError):
        raise EngineError("broken", "the engine broke off its answer") from None
