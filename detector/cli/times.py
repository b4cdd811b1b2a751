"""Instants that users give: RFC 3339, or how long ago."""

import time
from datetime import UTC, datetime
from typing import Final

from detector.config.units import parse_duration_ms
from detector.errors import UsageError

UNITS: Final = ("s", "m", "h", "d")


def instant_ms(text: str | None, flag: str) -> int | None:
    """Return an instant in milliseconds, None without one; UTC if it has no offset.

    Raises UsageError for what is no time.
    """
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        hint = "such as 2026-11-29T17:00:00Z"
        raise UsageError(f"{text[:40]!r} is no time", where=flag, hint=hint) from None


def since_ms(text: str | None, flag: str) -> int | None:
    """Return the same; the instant may be given as how long ago it is, such as 6h.

    What is longer ago than 1970 is from 1970 on.
    """
    if text is None or not text.endswith(UNITS):
        return instant_ms(text, flag)
    try:
        return max(int(time.time() * 1000) - parse_duration_ms(text), 0)
    except ValueError as error:
        hint = "such as 6h or 1h30m, or a time such as 2026-11-29T17:00:00Z"
        raise UsageError(f"{text[:40]!r} {error}", where=flag, hint=hint) from None
