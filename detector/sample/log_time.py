"""Lines of an engine's log in the order of time, as concurrent requests interleave them."""

from collections.abc import Iterable
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

TimedLine = tuple[float, str]
"""A time in seconds of the traffic's own clock, and the line written at that time."""


def instant(epoch_s: float, ts: float) -> datetime:
    """Return the UTC time of `ts` seconds of traffic that starts at `epoch_s` (Unix seconds)."""
    return datetime.fromtimestamp(epoch_s + ts, UTC)


def write_lines(path: Path, lines: Iterable[TimedLine]) -> None:
    """Write the lines sorted by time; lines of one instant keep their order."""
    ordered = sorted(lines, key=itemgetter(0))
    path.write_text("".join(f"{text}\n" for _, text in ordered), encoding="utf-8", newline="\n")


def running(requests: Iterable[tuple[float, float]], at: float) -> int:
    """How many of the (start, end) intervals hold the time `at`."""
    return sum(start <= at < end for start, end in requests)
