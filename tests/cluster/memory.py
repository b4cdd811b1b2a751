"""Memory of the processes of a soak over time, and whether it grows."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tests.cluster.process import Process

SETTLED_S: Final = 900.0
"""Before a window and the longest response have passed, memory grows by design."""

GROWTH: Final = 1.25
SLACK_BYTES: Final = 32 << 20
"""More than allocators keep for themselves: a process that exceeds both grows."""


class Point(NamedTuple):
    """What one process held; `pid` changes when it was started again."""

    at_s: float
    pid: int
    resident_bytes: int


class Memory:
    """Takes points while a run lasts; times are seconds since its beginning."""

    def __init__(self) -> None:
        self._points: dict[str, list[Point]] = defaultdict(list)

    def take(self, at_s: float, processes: Iterable[Process]) -> None:
        """Note what every process that runs holds."""
        for one in processes:
            if one.is_running:
                self._points[one.name].append(Point(at_s, one.pid, one.resident_bytes()))

    def rows(self) -> list[tuple[str, int, int, int]]:
        """Return name, most in the first half, most in the second half (MiB), and starts."""
        made = []
        for name, points in sorted(self._points.items()):
            half = points[-1].at_s / 2
            first = max((one.resident_bytes for one in points if one.at_s <= half), default=0)
            second = max((one.resident_bytes for one in points if one.at_s > half), default=0)
            made.append((name, first >> 20, second >> 20, len({one.pid for one in points})))
        return made

    def growing(self) -> list[str]:
        """Return who grows."""
        return [name for name, points in self._points.items() if is_growing(points)]


def is_growing(points: Sequence[Point]) -> bool:
    """True if the second half of a long run holds much more than the first ever did."""
    half_s = points[-1].at_s / 2
    if half_s < SETTLED_S:
        return False
    first = max((one.resident_bytes for one in points if one.at_s <= half_s), default=0)
    second = max(one.resident_bytes for one in points if one.at_s > half_s)
    return second > first * GROWTH + SLACK_BYTES
