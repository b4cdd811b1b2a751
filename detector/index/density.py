"""How many shingles a pool's window holds: the more, the longer a run must be to mean anything."""

import sys
from collections import deque
from dataclasses import dataclass, field

from detector.model import Kind, Sequence

SILENT_WINDOWS = 2
"""A pool that was silent for longer is forgotten when a new one comes: pods come and go."""

LEAST_ELAPSED_SHARE = 0.1
"""Share of a window that must have passed at least before its rate is extrapolated."""

_Side = tuple[int, str, str, Kind, int]
"""A part of a prompt or of a response: when it started, tenant, request, kind and part."""


@dataclass(slots=True)
class _Pool:
    began_ms: int
    now_ms: int
    heard_ms: int
    """Newest time of any pool when this one was heard last: one that lags is not silent."""
    entries: deque[tuple[int, _Side]] = field(default_factory=deque)
    counted: set[_Side] = field(default_factory=set)
    total: int = 0


class PoolDensity:
    """Counts the shingles that each pool has shown within the last window of event time.

    What is sent twice counts once. Pools that fell silent are forgotten.
    """

    def __init__(self, *, window_ms: int) -> None:
        self._window_ms = window_ms
        self._pools: dict[str, _Pool] = {}
        self._newest_ms = -sys.maxsize

    def __len__(self) -> int:
        """Return the number of pools that are remembered."""
        return len(self._pools)

    def add(self, sequence: Sequence, shingles: int) -> None:
        """Record that a sequence shows so many shingles; its start is when."""
        at_ms = sequence.started_at_ms
        self._newest_ms = max(self._newest_ms, at_ms)
        pool = self._pools.get(sequence.kv_pool)
        if pool is None:
            self._forget_silent()
            pool = _Pool(began_ms=at_ms, now_ms=at_ms, heard_ms=self._newest_ms)
            self._pools[sequence.kv_pool] = pool
        elif at_ms > pool.now_ms:
            pool.now_ms = at_ms
        pool.heard_ms = self._newest_ms
        since_ms = pool.now_ms - self._window_ms
        if at_ms < since_ms:
            return
        side = (at_ms, sequence.tenant, sequence.request_id, sequence.kind, sequence.part)
        counted, entries = pool.counted, pool.entries
        before = len(counted)
        counted.add(side)
        if len(counted) == before:
            return
        entries.append((shingles, side))
        pool.total += shingles
        while entries[0][1][0] < since_ms:  # ends at the new one at the latest
            gone, left = entries.popleft()
            pool.total -= gone
            counted.remove(left)

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

    def _forget_silent(self) -> None:
        before_ms = self._newest_ms - SILENT_WINDOWS * self._window_ms
        self._pools = {
            name: pool for name, pool in self._pools.items() if pool.heard_ms >= before_ms
        }
