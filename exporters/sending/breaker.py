"""A circuit breaker for one output: after failures in a row its receiver is called now and then.

It also keeps the pause that a receiver asks for.
"""

from typing import Final

TOLERATED: Final = 5
"""Failures in a row before it opens: one bad notification among good ones never opens it."""

OPEN_MS: Final = 30_000
"""How long it stays open; then one attempt decides."""

LONGEST_MS: Final = 3_600_000
"""No pause is longer, whatever a receiver asks for: what is further off comes from a clock that was
set back, and nobody asked for that."""

UNSEEN_MS: Final = 2 * LONGEST_MS
"""Failures further apart are not one outage: nobody has looked in between."""


class Breaker:
    """Closed, open until an instant, or on trial; times in milliseconds of the caller's clock."""

    def __init__(self) -> None:
        self._failures = 0
        self._until_ms = 0
        self._since_ms = 0
        self._last_ms = 0

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt failed."""
        return self._failures > 0

    def opens_ms(self, now_ms: int) -> int:
        """Return when something may be sent: now or later, within the longest pause."""
        is_paused = now_ms < self._until_ms <= now_ms + LONGEST_MS
        return self._until_ms if is_paused else now_ms

    def failing_ms(self, now_ms: int) -> int:
        """Return for how long every attempt has failed; 0 where nobody has tried lately."""
        if not self._failures or now_ms - self._last_ms > UNSEEN_MS:
            return 0
        return max(now_ms - self._since_ms, 0)

    def succeeded(self) -> None:
        """Close it."""
        self._failures = 0

    def failed(self, *, now_ms: int) -> None:
        """Count a failure; opens it after several, and again after each that follows."""
        if not self.failing_ms(now_ms):
            self._since_ms = now_ms
        self._last_ms = now_ms
        if self._until_ms > now_ms + LONGEST_MS:
            self._until_ms = now_ms
        self._failures += 1
        if self._failures >= TOLERATED:
            self.pause(until_ms=now_ms + OPEN_MS)

    def pause(self, *, until_ms: int) -> None:
        """Send nothing before an instant."""
        self._until_ms = max(self._until_ms, until_ms)
