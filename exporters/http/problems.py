"""Errors as problem details (RFC 9457); they hold nothing of what was sent but its field names."""

from http import HTTPStatus
from typing import Final

import msgspec
from starlette.responses import Response

MEDIA_TYPE: Final = "application/problem+json"


class Wrong(msgspec.Struct, frozen=True):
    """What is wrong with one field: `field` is where it is, such as `query.limit`."""

    field: str
    problem: str


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """What went wrong. `type` names the kind of problem; `errors` names fields."""

    type: str
    title: str
    status: int
    detail: str
    errors: tuple[Wrong, ...] = ()


class ProblemError(Exception):
    """Ends the handling of a request with a problem as its answer."""

    def __init__(
        self, status: HTTPStatus, kind: str, detail: str, *, errors: tuple[Wrong, ...] = ()
    ) -> None:
        super().__init__(detail)
        self.problem = problem(status, kind, detail, errors=errors)


def problem(
    status: HTTPStatus, kind: str, detail: str, *, errors: tuple[Wrong, ...] = ()
) -> Problem:
    """Return a problem of a kind."""
    return Problem(
        type=f"urn:bleedwatch:problem:{kind}",
        title=status.phrase,
        status=status.value,
        detail=detail,
        errors=errors,
    )


def no_such(what: str) -> ProblemError:
    """Return the problem of asking for something that is not there."""
    return ProblemError(HTTPStatus.NOT_FOUND, "not-found", f"there is no such {what}")


def answer(told: Problem) -> Response:
    """Return the answer that tells a problem."""
    needs_token = told.status == HTTPStatus.UNAUTHORIZED
    return Response(
        msgspec.json.encode(told),
        status_code=told.status,
        media_type=MEDIA_TYPE,
        headers={"WWW-Authenticate": "Bearer"} if needs_token else None,
    )
