"""How many notifications a minute an output gets: a bucket that fills evenly."""

from typing import Final

_MINUTE_MS: Final = 60_000


class Rate:
    """At most `per_minute` at once, and as many each minute; times by the caller's clock."""

    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        self._left = float(per_minute)
        self._at_ms = 0

    def free_at_ms(self, now_ms: int) -> int:
        """Return when the next may be sent: now or later."""
        self._fill(now_ms)
        if self._left >= 1:
            return now_ms
        return now_ms + int((1 - self._left) * _MINUTE_MS / self._per_minute) + 1

    def take(self, now_ms: int) -> None:
        """Count one."""
        self._fill(now_ms)
        self._left -= 1

    def _fill(self, now_ms: int) -> None:
        gained = max(now_ms - self._at_ms, 0) * self._per_minute / _MINUTE_MS
        self._left = min(self._left + gained, float(self._per_minute))
        self._at_ms = now_ms
