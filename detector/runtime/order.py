"""Puts what one engine reports in the order of its own clock; other clocks do not matter."""

import heapq
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_HELD = 1_024
"""Reports held of one engine at most; beyond, the oldest go on early."""


class Ordered(Generic[T]):
    """Holds reports back until `hold_ms` of later ones are in; `key` breaks ties and tells repeats.

    With `by_arrival` ties stay in the order in which they came. A report that comes after its turn
    goes on at once, unless it is a repeat.
    """

    def __init__(self, hold_ms: int, *, by_arrival: bool = False, max_held: int = MAX_HELD) -> None:
        self._hold_ms = hold_ms
        self._by_arrival = by_arrival
        self._max_held = max_held
        self._heap: list[tuple[int, str, int, T]] = []
        self._known: dict[tuple[int, str], None] = {}
        self._newest_ms: int | None = None
        self._count = 0

    def push(self, at_ms: int, key: str, report: T) -> Iterator[T]:
        """Take a report and yield those whose turn it is."""
        if (at_ms, key) in self._known:
            return
        self._remember(at_ms, key)
        self._count += 1
        tie = "" if self._by_arrival else key
        heapq.heappush(self._heap, (at_ms, tie, self._count, report))
        self._newest_ms = at_ms if self._newest_ms is None else max(self._newest_ms, at_ms)
        while self._heap and (
            self._heap[0][0] <= self._newest_ms - self._hold_ms or len(self._heap) > self._max_held
        ):
            yield heapq.heappop(self._heap)[-1]

    def drain(self) -> Iterator[T]:
        """Yield all that is held, in order: nothing more comes for now."""
        while self._heap:
            yield heapq.heappop(self._heap)[-1]

    def _remember(self, at_ms: int, key: str) -> None:
        self._known[at_ms, key] = None
        if len(self._known) > 2 * self._max_held:
            del self._known[next(iter(self._known))]
