"""The year of a vLLM text log, whose lines name month and day only."""

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

FirstYear = Callable[[int, int], int]
"""Tells the year of a log once its first line has told month and day."""

_DAY: Final = re.compile(rb"\b(?:DEBUG|INFO|WARNING|ERROR) (\d\d)-(\d\d) \d\d:\d\d:\d\d")
_LOOK_BYTES: Final = 512


def year_of(first_lines: Iterable[bytes], *, written: datetime) -> int:
    """Return the year of the first lines of a log that was last written to at `written`."""
    for line in first_lines:
        seen = _DAY.search(line[:_LOOK_BYTES])
        if seen is not None:
            return year_of_day(int(seen[1]), int(seen[2]), written=written)
    return written.year


def year_of_day(month: int, day: int, *, written: datetime) -> int:
    """Return the year of a first line of that day.

    `written` tells the year of the last line; a first line that would lie after it is of the year
    before.
    """
    limit = written + timedelta(days=1)
    late = (month, day) > (limit.month, limit.day)
    return written.year - 1 if late and limit.year == written.year else written.year


def year_by_clock(month: int, day: int) -> int:
    """Return the year of a first line of that day that comes now."""
    return year_of_day(month, day, written=datetime.now(UTC))
