"""The year of a vLLM text log, whose lines name month and day only."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

_DAY: Final = re.compile(rb"\b(?:DEBUG|INFO|WARNING|ERROR) (\d\d)-(\d\d) \d\d:\d\d:\d\d")
_LOOK_BYTES: Final = 512


def year_of(first_lines: Iterable[bytes], *, written: datetime) -> int:
    """Return the year of the first lines of a log that was last written to at `written`.

    That tells the year of the last line; a first line that would lie after it is of the year
    before.
    """
    limit = written + timedelta(days=1)
    for line in first_lines:
        seen = _DAY.search(line[:_LOOK_BYTES])
        if seen is not None:
            late = (int(seen[1]), int(seen[2])) > (limit.month, limit.day)
            return written.year - 1 if late and limit.year == written.year else written.year
    return written.year
