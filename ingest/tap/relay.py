"""The proxy as an ASGI application: every request goes to the engine, every answer comes back.

What comes from `watch` changes bodies and keeps ids, and cannot fail a request.
"""

import asyncio
import logging
from typing import Final

from starlette.types import Receive, Scope, Send

from detector.errors import EngineError
from ingest.tap.engine import Engine, EngineAnswer
from ingest.tap.heads import HeaderList, first, passed_on, to_engine, with_length
from ingest.tap.rewriting import Rewriting
from ingest.tap.traffic import Traffic
from ingest.tap.upload import GoneError, Upload
from ingest.tap.watch import Watch

_log = logging.getLogger(__name__)

NO_ANSWER: Final = (
    b'{"error":{"message":"the engine behind the tap does not answer","type":"bad_gateway",'
    b'"param":null,"code":502}}'
)
"""In the form of the OpenAI API, which its clients understand."""


class Relay:
    """Serves all requests of one proxy."""

    def __init__(self, engine: Engine, watch: Watch, traffic: Traffic) -> None:
        self.engine = engine
        self.watch = watch
        self.traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; end it at once when its client goes away."""
        if scope["type"] != "http":
            return
        upload = Upload(receive, self.watch.room)
        passing = _Passing(self, scope, upload, send)
        self.traffic.in_flight += 1
        running = asyncio.ensure_future(passing.run())
        gone = asyncio.ensure_future(upload.gone())
        try:
            await asyncio.wait({running, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (running, gone):
                task.cancel()
            results = await asyncio.gather(running, gone, return_exceptions=True)
            upload.close()
            self.traffic.in_flight -= 1
            if isinstance(results[0], asyncio.CancelledError | GoneError):
                self.traffic.cut += 1
            elif isinstance(results[0], Exception):
                self.watch.fault("a request was not answered", results[0])


class _Passing:
    """One request on its way to the engine, and its answer on the way back."""

    def __init__(self, parts: "Relay", scope: Scope, upload: Upload, send: Send) -> None:
        self._engine = parts.engine
        self._watch = parts.watch
        self._traffic = parts.traffic
        self._upload = upload
        self._send = send
        self._method: str = scope["method"]
        self._path: str = scope["path"]
        query: bytes = scope["query_string"]
        target: bytes = scope["raw_path"] + (b"?" + query if query else b"")
        self._target = target.decode("latin-1")
        self._headers: HeaderList = scope["headers"]
        self._rewriting: Rewriting | None = None
        self._start: HeaderList | None = None
        self._status = 0

    async def run(self) -> None:
        body = await self._asked()
        length = len(body) if body is not None else None
        headers = to_engine(self._headers, length=length, asks_plain=self._rewriting is not None)
        is_cut = True
        try:
            async with self._engine.ask(
                self._method,
                self._target,
                headers,
                self._upload.pieces() if body is None and self._has_body else body,
            ) as answer:
                await self._answer(answer)
                is_cut = False
        except EngineError as error:
            if self._upload.is_gone:  # the client took its body away while it was being sent
                raise GoneError from None
            self._traffic.engine_errors[error.reason] += 1
            await self._break_off()
        finally:
            if self._rewriting is not None:
                self._rewriting.close(is_cut=is_cut)

    @property
    def _has_body(self) -> bool:
        return any(first(self._headers, name) for name in (b"content-length", b"transfer-encoding"))

    async def _asked(self) -> bytes | None:
        """Return the body to send if it is known whole; else it passes as it comes."""
        dialect = self._watch.dialect(self._method, self._path)
        if dialect is None:
            self._traffic.passed += 1
            if not self._has_body:
                self._upload.has_no_body()
            return None
        self._traffic.watched += 1
        encoding = first(self._headers, b"content-encoding").strip().lower()
        if encoding not in (b"", b"identity"):
            self._watch.blind.count("compressed_request")
            return None
        cause = await self._upload.read(self._watch.settings.max_body_bytes)
        if cause is not None:
            self._watch.blind.count(cause)
            return None
        begun = self._watch.begin(dialect, self._headers, self._upload.body())
        self._rewriting = begun.rewriting
        return begun.body

    async def _answer(self, answer: EngineAnswer) -> None:
        self._status, self._start = answer.status, passed_on(answer.headers)
        rewriting = self._rewriting
        if rewriting is None:
            await self._begin()
            async for piece in answer.pieces:
                await self._pass(piece)
            await self._finish(b"")
            return
        rewriting.head(
            answer.status,
            first(answer.headers, b"content-type"),
            first(answer.headers, b"content-encoding"),
        )
        await self._begin(is_held=True)
        async for piece in answer.pieces:
            await self._pass(rewriting.feed(piece))
        is_held = rewriting.changes_length
        rest = rewriting.end()
        if is_held and self._start is not None:
            self._start = with_length(self._start, len(rest))
        await self._finish(rest)

    async def _pass(self, piece: bytes) -> None:
        await self._begin(is_held=not piece)
        if piece:
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _begin(self, *, is_held: bool = False) -> None:
        """Send the head once: with the first piece, or at once unless the answer is held."""
        is_whole = self._rewriting is not None and self._rewriting.changes_length
        if self._start is None or (is_held and is_whole):
            return
        start, self._start = self._start, None
        await self._send({"type": "http.response.start", "status": self._status, "headers": start})

    async def _finish(self, rest: bytes) -> None:
        await self._begin()
        await self._send({"type": "http.response.body", "body": rest, "more_body": False})

    async def _break_off(self) -> None:
        """Tell that the engine gave no answer, or no whole one: then the connection just ends."""
        if not self._status:
            self._status = 502
            self._start = [
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(NO_ANSWER)),
            ]
            await self._finish(NO_ANSWER)
            return
        await self._begin()
        if self._rewriting is not None:
            await self._pass(self._rewriting.end())
