"""How many shingles a pool's window holds: the more, the longer a run must be to mean anything."""

from collections import deque
from dataclasses import dataclass, field

LEAST_ELAPSED_SHARE = 0.1
"""Share of a window that must have passed at least before its rate is extrapolated."""


@dataclass(slots=True)
class _Pool:
    began_ms: int
    now_ms: int
    entries: deque[tuple[int, int]] = field(default_factory=deque)
    total: int = 0


class PoolDensity:
    """Counts the shingles that each pool has shown within the last window of event time."""

    def __init__(self, *, window_ms: int) -> None:
        self._window_ms = window_ms
        self._pools: dict[str, _Pool] = {}

    def add(self, name: str, shingles: int, at_ms: int) -> None:
        """Record the shingles of one sequence that started at `at_ms`."""
        pool = self._pools.get(name)
        if pool is None:
            pool = self._pools[name] = _Pool(began_ms=at_ms, now_ms=at_ms)
        pool.now_ms = max(pool.now_ms, at_ms)
        pool.entries.append((at_ms, shingles))
        pool.total += shingles
        while pool.entries and pool.entries[0][0] < pool.now_ms - self._window_ms:
            pool.total -= pool.entries.popleft()[1]

    def shingles(self, name: str) -> int:
        """Return the shingles of the pool's window.

        A window that has only just begun is judged by its rate: the count so far is scaled up to
        a whole window, or a busy pool would count as a quiet one for its first minutes.
        """
        pool = self._pools.get(name)
        if pool is None:
            return 0
        elapsed = (pool.now_ms - pool.began_ms) / self._window_ms
        return int(pool.total / min(max(elapsed, LEAST_ELAPSED_SHARE), 1.0))
