"""Errors of the port as problem details (RFC 9457); they hold nothing of what was sent."""

from http import HTTPStatus
from typing import Final

import msgspec
from starlette.responses import Response

MEDIA_TYPE: Final = "application/problem+json"

RETRY_AFTER_S: Final = 1
"""When a push that found no room is worth another try: some batches have left by then."""


class Problem(msgspec.Struct, omit_defaults=True):
    """What went wrong. `type` names the kind of problem; `reasons` counts refused requests."""

    type: str
    title: str
    status: int
    detail: str
    reasons: dict[str, int] = {}


class ProblemError(Exception):
    """Ends the handling of a request with a problem as its answer."""

    def __init__(
        self,
        status: HTTPStatus,
        kind: str,
        detail: str,
        *,
        reasons: dict[str, int] | None = None,
        retry: bool = False,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.retry = retry
        self.problem = Problem(
            type=f"urn:bleedwatch:problem:{kind}",
            title=status.phrase,
            status=status.value,
            detail=detail,
            reasons=reasons or {},
        )

    def response(self) -> Response:
        """Return the answer."""
        return Response(
            msgspec.json.encode(self.problem),
            status_code=self.status,
            media_type=MEDIA_TYPE,
            headers={"Retry-After": str(RETRY_AFTER_S)} if self.retry else None,
        )


def no_room(detail: str) -> ProblemError:
    """Return the problem of a push that should be tried again a little later."""
    return ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, "no-room", detail, retry=True)
