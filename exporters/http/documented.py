"""What routes say of their answers, for the description of the API."""

from http import HTTPStatus
from typing import Any, Final

import msgspec

from exporters.http.answers import JSON
from exporters.http.problems import MEDIA_TYPE

REF: Final = "#/components/schemas/"

_ALWAYS: Final = (400, 401, 421, 422, 503)
_WRITING: Final = (403, 413)
_MEANING: Final = {
    400: "Something asked for is not what it should be.",
    401: "A bearer token is needed.",
    403: "The token may only read.",
    404: "There is no such thing.",
    409: "It is in another state.",
    413: "The body is too large.",
    421: "Without sign-in only localhost is served.",
    422: "A field breaks its bounds.",
    503: "The store is away.",
}


def answers(
    kind: type[msgspec.Struct] | None,
    *problems: int,
    writes: bool = False,
    status: int = 200,
) -> dict[str, Any]:
    """Return what a route needs to say that it answers with `kind`, or with one of the problems."""
    codes = sorted({*_ALWAYS, *problems, *(_WRITING if writes else ())})
    responses: dict[int, dict[str, Any]] = {
        code: {
            "description": _MEANING[code],
            "content": {MEDIA_TYPE: {"schema": {"$ref": f"{REF}Problem"}}},
        }
        for code in codes
    }
    good: dict[str, Any] = {"description": HTTPStatus(status).phrase}
    if kind is not None:
        good["content"] = {JSON: {"schema": {"$ref": f"{REF}{kind.__name__}"}}}
    responses[status] = good
    return {
        "responses": responses,
        "status_code": status,
        "response_model": None,
        "openapi_extra": {"security": [{"write": []}] if writes else [{}, {"read": []}]},
    }
