"""Answers that all ports give alike: probes, and problems for whatever goes wrong."""

from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from ingest.push.problem import ProblemError

JSON: Final = "application/json"

Reasons = Callable[[], Sequence[str]]
"""Says why not all is well; called in the server's thread."""

Handler = Callable[[Request, Exception], Response | Awaitable[Response]]


class Answer(msgspec.Struct):
    """The answer of a probe."""

    ok: bool
    reasons: list[str]


def handlers() -> dict[type[Exception] | int, Handler]:
    """Return what answers for each kind of error."""
    return {ProblemError: _problem, HTTPException: _http_problem, Exception: _fault}


def probed(reasons: Reasons) -> Response:
    """Return the answer of a probe: 200, or 503 with the reasons."""
    found = list(reasons())
    status = HTTPStatus.SERVICE_UNAVAILABLE if found else HTTPStatus.OK
    body = msgspec.json.encode(Answer(ok=not found, reasons=found))
    return Response(body, status_code=status, media_type=JSON)


def _problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, ProblemError)
    return error.response()


def _http_problem(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    made = ProblemError(status, "http", "docs/openapi-sidecar.json lists what there is").response()
    made.headers.update(error.headers or {})
    return made


def _fault(_request: Request, error: Exception) -> Response:
    """Answer for a bug of ours; its message may hold anything and is not shown."""
    detail = f"a fault of bleedwatch ({type(error).__name__}): nothing is known of the push"
    return ProblemError(HTTPStatus.INTERNAL_SERVER_ERROR, "fault", detail).response()
