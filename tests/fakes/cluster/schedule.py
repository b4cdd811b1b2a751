"""Simulated time: processes that wait for a number of seconds, woken in order."""

import heapq
from collections.abc import Generator
from itertools import count

Process = Generator[float, None, None]
"""Yields how many seconds it wants to wait."""


class Schedule:
    """Runs processes; what wakes at the same time wakes in the order in which it was started."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._waiting: list[tuple[float, int, Process]] = []
        self._order = count()

    def start(self, process: Process, *, at_s: float | None = None) -> None:
        """Begin a process now, or at a time that is to come."""
        when = self.now_s if at_s is None else at_s
        heapq.heappush(self._waiting, (when, next(self._order), process))

    def run(self, until_s: float) -> None:
        """Let time pass."""
        while self._waiting and self._waiting[0][0] <= until_s:
            self.now_s, _, process = heapq.heappop(self._waiting)
            wait_s = next(process, None)
            if wait_s is not None:
                self.start(process, at_s=self.now_s + wait_s)
        self.now_s = until_s
