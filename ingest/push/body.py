"""Reads the body of a push: of a known type, not larger than allowed, not slower than allowed."""

import asyncio
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from starlette.requests import ClientDisconnect, Request

from ingest.push.problem import ProblemError, no_room
from ingest.push.settings import PushSettings
from ingest.schema import Encoding


class Bodies:
    """Reads bodies within bounds that all of them share; for one event loop."""

    def __init__(self, settings: PushSettings, token: bytes | None) -> None:
        self._settings = settings
        self._token = token
        self._reading = 0

    async def read(self, request: Request) -> tuple[bytes, Encoding]:
        """Return the body and how it is encoded; raises ProblemError."""
        self._authorise(request)
        encoding = _encoding(request)
        _plain(request)
        stated = _stated_length(request)
        if stated is not None and stated > self._settings.max_body_bytes:
            raise self._too_large()
        most = self._settings.max_body_bytes if stated is None else stated
        with self._room(most):
            try:
                async with asyncio.timeout(self._settings.read_ms / 1000):
                    return await self._read(request), encoding
            except TimeoutError:
                raise ProblemError(
                    HTTPStatus.REQUEST_TIMEOUT, "too-slow", "the body did not come in time"
                ) from None
            except ClientDisconnect:
                raise ProblemError(
                    HTTPStatus.BAD_REQUEST, "cut-short", "the body ended early"
                ) from None

    async def _read(self, request: Request) -> bytes:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._settings.max_body_bytes:
                raise self._too_large()
        return bytes(body)

    @contextmanager
    def _room(self, size: int) -> Iterator[None]:
        if self._reading + size > self._settings.reading_bytes:
            raise no_room("other pushes are being read")
        self._reading += size
        try:
            yield
        finally:
            self._reading -= size

    def _authorise(self, request: Request) -> None:
        if self._token is None:
            return
        given = request.headers.get("authorization", "")
        scheme, _, token = given.partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.encode(), self._token):
            raise ProblemError(
                HTTPStatus.UNAUTHORIZED, "token", "a bearer token is needed, as in push.token_file"
            )

    def _too_large(self) -> ProblemError:
        return ProblemError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "too-large",
            f"a push may have {self._settings.max_body_bytes} bytes (push.max_body_bytes)",
        )


def _encoding(request: Request) -> Encoding:
    """Return the encoding; one is needed, so that no web page can push unasked."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        return Encoding(given)
    except ValueError:
        known = ", ".join(Encoding)
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "content-type", f"content-type is one of {known}"
        ) from None


def _plain(request: Request) -> None:
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "content-encoding", "compressed bodies are not read"
        )


def _stated_length(request: Request) -> int | None:
    """Return the stated length; the HTTP parser has refused what is no number."""
    stated = request.headers.get("content-length")
    return None if stated is None else int(stated)
