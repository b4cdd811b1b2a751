"""How pages write instants, lengths of time, counts and commands."""

import re
from datetime import UTC, datetime

from markupsafe import Markup, escape

EARLIEST_CALENDAR_MS = 100_000_000_000
"""Times below this (1973) are a log's own relative time, not the calendar."""

_COMMAND = re.compile(r"`([^`]+)`")


def instant(at_ms: int | None) -> str:
    """Return an instant in UTC to the second, or seconds where the time is a log's own."""
    if at_ms is None:
        return "-"
    if at_ms < EARLIEST_CALENDAR_MS:
        return f"{at_ms / 1000:+,.1f} s"
    try:
        moment = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def percent(share: float | None) -> str:
    """Return a share as a percentage."""
    return "-" if share is None else f"{share:.1%}"


def words(identifier: str) -> str:
    """Return a fixed word as people write it."""
    return identifier.replace("_", " ")


def commands(text: str) -> Markup:
    """Return text with what stands between backticks as code."""
    return Markup(_COMMAND.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped
