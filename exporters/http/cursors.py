"""Cursors: where a page ended, as text that callers hand back unread."""

import base64
from http import HTTPStatus
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from exporters.http.problems import ProblemError, Wrong

_T = TypeVar("_T", bound=tuple[Any, ...])

_MOST = (1 << 63) - 1
"""The largest number that a database holds."""


def cursor(place: NamedTuple) -> str:
    """Return a place as a cursor; it names the kind of place, so that no other list takes it."""
    named = msgspec.json.encode((type(place).__name__, place))
    return base64.urlsafe_b64encode(named).decode().rstrip("=")


def _require_storable(value: object) -> None:
    """Raise ValueError for a number that no database holds."""
    if isinstance(value, int) and abs(value) > _MOST:
        raise ValueError("too large")
    if isinstance(value, list | tuple):
        for one in value:
            _require_storable(one)


def place(text: str | None, kind: type[_T]) -> _T | None:
    """Return the place that a cursor means, None without one; raises ProblemError for another."""
    if text is None:
        return None
    try:
        raw = base64.urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        form = tuple[Literal[kind.__name__], kind]  # type: ignore[valid-type,name-defined]
        _, found = msgspec.json.decode(raw, type=form)
        _require_storable(msgspec.to_builtins(found))
    except (ValueError, msgspec.MsgspecError, RecursionError):
        wrong = Wrong("query.cursor", "is not a cursor that this list gave")
        raise ProblemError(
            HTTPStatus.BAD_REQUEST, "cursor", "take `next` of the page before", errors=(wrong,)
        ) from None
    return found
