"""What a probe may use: a number of requests and a time, neither of which it ever exceeds."""

import threading
import time
from collections.abc import Callable

from detector.errors import BudgetError


class Budget:
    """Counts every request of a probe, whatever it is for. Safe to use from several threads."""

    def __init__(
        self, *, requests: int, seconds: float, clock_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.requests = requests
        self.seconds = seconds
        self.used = 0
        self._clock_s = clock_s
        self._until_s = clock_s() + seconds
        self._lock = threading.Lock()

    @property
    def left_s(self) -> float:
        """Seconds that are left, never below zero."""
        return max(0.0, self._until_s - self._clock_s())

    def spend(self) -> None:
        """Take one request. Raises BudgetError, and takes none, if none or no time is left."""
        with self._lock:
            if self.used >= self.requests:
                raise BudgetError(
                    f"all {self.requests:,} requests are used up", hint="raise --max-requests"
                )
            self.check_time()
            self.used += 1

    def check_time(self) -> None:
        """Raise BudgetError if no time is left."""
        if self.left_s <= 0:
            raise BudgetError(f"{self.seconds:g} seconds are over", hint="raise --max-seconds")
