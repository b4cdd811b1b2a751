"""The port of a `run all` that listens, as an ASGI application: messages, and pushes."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from detector.errors import RecordError
from ingest.broker import Message
from ingest.push.answers import JSON, handlers, probed
from ingest.push.app import PushApp
from ingest.push.body import Bodies
from ingest.push.problem import ProblemError, no_room
from ingest.push.received import Received
from ingest.schema import Encoding

MAX_MESSAGES: Final = 10_000
"""Messages of one request."""

Metrics = Callable[[str], tuple[bytes, str]]
"""Gives a page of metrics for an Accept header, and its type."""

_decoder: Final = msgspec.msgpack.Decoder(list[Message])


def receiver(
    received: Received,
    bodies: Bodies,
    *,
    not_live: Callable[[], list[str]],
    not_ready: Callable[[], list[str]] | None = None,
    pushes: PushApp | None = None,
    metrics: Metrics | None = None,
) -> Starlette:
    """Return the application; messages go to `received`, and `pushes` takes what is pushed."""

    async def messages(request: Request) -> Response:
        if received.is_full:
            raise no_room("the stream is behind")
        body, encoding = await bodies.read(request)
        received.add(_found(body, encoding))
        return Response(b"{}", status_code=HTTPStatus.ACCEPTED, media_type=JSON)

    async def livez(_request: Request) -> Response:
        return probed(not_live)

    async def readyz(_request: Request) -> Response:
        return probed(not_live if not_ready is None else not_ready)

    async def scraped(request: Request) -> Response:
        assert metrics is not None
        page, media_type = metrics(request.headers.get("accept", ""))
        return Response(page, headers={"content-type": media_type})

    return Starlette(
        routes=[
            Route("/v1/messages", messages, methods=["POST"]),
            *(() if pushes is None else pushes.pushes),
            *([] if metrics is None else [Route("/metrics", scraped, methods=["GET"])]),
            Route("/livez", livez, methods=["GET"]),
            Route("/readyz", readyz, methods=["GET"]),
        ],
        exception_handlers={**handlers(), RecordError: _refused},
    )


def _found(body: bytes, encoding: Encoding) -> list[Message]:
    if encoding is not Encoding.MSGPACK:
        raise ProblemError(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "content-type", "messages are MessagePack"
        )
    try:
        found = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, OverflowError, RecursionError):
        raise ProblemError(
            HTTPStatus.BAD_REQUEST, "undecodable", "the body is no list of messages"
        ) from None
    if len(found) > MAX_MESSAGES:
        raise ProblemError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-many", f"more than {MAX_MESSAGES} messages"
        )
    return found


def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RecordError)
    kind = error.reason.replace("_", "-")
    return ProblemError(HTTPStatus.UNPROCESSABLE_ENTITY, kind, error.what).response()
