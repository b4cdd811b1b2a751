"""Memory of the processes of a soak: each life of a process is judged by itself.

A process that was started again begins with little, so nothing is ever compared across a start.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final, NamedTuple

from tests.cluster.process import Process

SETTLED_S: Final = 900.0
"""Before a window and the longest response have passed, memory of a new process grows by design."""

JUDGED_S: Final = 300.0
"""What must be left of a life after that: in less, growth is not told from ups and downs."""

LONG_S: Final = SETTLED_S + JUDGED_S + 300.0
"""A run so long must have lives to judge: what is spared is killed within its first minutes."""

GROWTH: Final = 1.1
SLACK_BYTES: Final = 32 << 20
"""More than allocators keep for themselves: a life that exceeds both grows."""


class Point(NamedTuple):
    """What one process held; `pid` changes when it was started again."""

    at_s: float
    pid: int
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class Life:
    """One life of a process, from a start to an end.

    `judged_s` is how long it was watched after it had settled, 0 if too short; the bytes are the
    medians of the two halves of that time, of the whole life if it was not judged.
    """

    seconds: float
    judged_s: float
    first_bytes: float
    second_bytes: float

    @property
    def grows(self) -> bool:
        """True if the second half holds much more than the first; never if it was not judged."""
        limit = max(self.first_bytes * GROWTH, self.first_bytes + SLACK_BYTES)
        return self.judged_s > 0 and self.second_bytes > limit


class Memory:
    """Takes points while a run lasts; times are seconds since its beginning."""

    def __init__(self) -> None:
        self._points: dict[str, list[Point]] = defaultdict(list)

    def take(self, at_s: float, processes: Iterable[Process]) -> None:
        """Note what every process that runs holds."""
        for one in processes:
            if one.is_running:
                self._points[one.name].append(Point(at_s, one.pid, one.resident_bytes()))

    def lives(self) -> dict[str, list[Life]]:
        """Return the lives of every process, by name."""
        return {name: lives(points) for name, points in sorted(self._points.items())}


def lives(points: Sequence[Point]) -> list[Life]:
    """Return the lives of one process, in order."""
    by_pid: dict[int, list[Point]] = defaultdict(list)
    for one in points:
        by_pid[one.pid].append(one)
    return [_life(each) for each in by_pid.values()]


def wrong(found: dict[str, list[Life]], spared: Iterable[str], *, seconds: float) -> list[str]:
    """Return who grows in any life, and who of the spared was not judged in a long run."""
    said = [f"{name} grows" for name, each in found.items() if any(one.grows for one in each)]
    if seconds >= LONG_S:
        said += [
            f"no life of {name} was long enough to judge its memory"
            for name in spared
            if not any(one.judged_s for one in found.get(name, ()))
        ]
    return said


def table(found: dict[str, list[Life]]) -> list[str]:
    """Return as Markdown how often each was started, its longest life, and what that one held."""
    rows = [
        "| process | starts | longest life, s | judged over, s | first half, MiB | second, MiB |",
        "|---|---|---|---|---|---|",
    ]
    for name, each in found.items():
        one = max(each, key=lambda life: life.seconds)
        judged = f"{one.judged_s:.0f}" if one.judged_s else "too short"
        held = [f"{size / (1 << 20):.0f}" for size in (one.first_bytes, one.second_bytes)]
        rows.append(f"| {name} | {len(each)} | {one.seconds:.0f} | {judged} | {' | '.join(held)} |")
    return rows


def _life(points: Sequence[Point]) -> Life:
    began_s, ended_s = points[0].at_s, points[-1].at_s
    settled_s = began_s + SETTLED_S
    is_judged = ended_s - settled_s >= JUDGED_S
    from_s = settled_s if is_judged else began_s
    half_s = (from_s + ended_s) / 2
    first = [one.resident_bytes for one in points if from_s <= one.at_s <= half_s]
    second = [one.resident_bytes for one in points if one.at_s >= half_s]
    return Life(
        seconds=ended_s - began_s,
        judged_s=ended_s - settled_s if is_judged else 0.0,
        first_bytes=median(first or second),
        second_bytes=median(second),
    )
