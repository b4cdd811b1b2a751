"""A circuit breaker for one output: after failures in a row its receiver is called now and then.

It also keeps the pause that a receiver asks for.
"""

from typing import Final

TOLERATED: Final = 5
"""Failures in a row before it opens: one bad notification among good ones never opens it."""

OPEN_MS: Final = 30_000
"""How long it stays open; then one attempt decides."""


class Breaker:
    """Closed, open until an instant, or on trial; times in milliseconds of the caller's clock."""

    def __init__(self) -> None:
        self._failures = 0
        self._until_ms = 0

    @property
    def until_ms(self) -> int:
        """Nothing is to be sent before this."""
        return self._until_ms

    @property
    def is_failing(self) -> bool:
        """Whether the last attempt failed."""
        return self._failures > 0

    def succeeded(self) -> None:
        """Close it."""
        self._failures = 0

    def failed(self, *, now_ms: int) -> None:
        """Count a failure; opens it after several, and again after each that follows."""
        self._failures += 1
        if self._failures >= TOLERATED:
            self.pause(until_ms=now_ms + OPEN_MS)

    def pause(self, *, until_ms: int) -> None:
        """Send nothing before an instant."""
        self._until_ms = max(self._until_ms, until_ms)
