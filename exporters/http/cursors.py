"""Cursors: where a page ended, as text that callers hand back unread."""

import base64
from http import HTTPStatus
from typing import TypeVar

import msgspec

from exporters.http.problems import ProblemError, Wrong

_T = TypeVar("_T")


def cursor(place: object) -> str:
    """Return a place as a cursor."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def place(text: str | None, kind: type[_T]) -> _T | None:
    """Return the place that a cursor means, None without one; raises ProblemError for another."""
    if text is None:
        return None
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        return msgspec.json.decode(raw, type=kind)
    except (ValueError, msgspec.MsgspecError):
        wrong = Wrong("query.cursor", "is not a cursor that this list gave")
        raise ProblemError(
            HTTPStatus.BAD_REQUEST, "cursor", "take `next` of the page before", errors=(wrong,)
        ) from None
