"""Fair timing on a busy machine: contestants take turns in one process, CPU time, medians."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

Work = Callable[[], int]
"""Does one round and returns how many units (tokens, fingerprints) it went through."""

LEAST_ROUNDS = 3


@dataclass(slots=True)
class Timing:
    """CPU nanoseconds per unit, one entry per round."""

    rounds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Return the median over the rounds."""
        return float(np.median(self.rounds))

    @property
    def spread(self) -> tuple[float, float]:
        """Return the 10th and the 90th percentile."""
        low, high = np.percentile(self.rounds, [10, 90])
        return float(low), float(high)


def interleave(
    contestants: Mapping[str, Work], *, rounds: int, seconds: float
) -> dict[str, Timing]:
    """Run every contestant once per round, after one round that does not count.

    Stops after `rounds` or `seconds` of wall time, but never before LEAST_ROUNDS.
    """
    for work in contestants.values():
        work()
    timings = {name: Timing() for name in contestants}
    ends = time.monotonic() + seconds
    for number in range(rounds):
        if number >= LEAST_ROUNDS and time.monotonic() > ends:
            break
        for name, work in contestants.items():
            began = time.process_time_ns()
            units = work()
            timings[name].rounds.append((time.process_time_ns() - began) / units)
    return timings


def ratio(timings: Mapping[str, Timing], slow: str, fast: str) -> float:
    """Return how many times faster `fast` is, as the median over rounds that lie side by side."""
    pairs = zip(timings[slow].rounds, timings[fast].rounds, strict=True)
    return float(np.median([a / b for a, b in pairs]))
