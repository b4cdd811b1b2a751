"""Episodes: when a state or a row of failures begins, is told once, and is over."""

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MAX_RECENT: Final = 256
"""Entries kept of one kind of failure; with so many within minutes it has been told long ago."""


@dataclass(slots=True)
class Sustained:
    """A state that is told when it has lasted, and is over when it is clearly gone.

    One observation never begins nor ends one, so a bad scrape does neither; what was not observed
    for longer than `gap_ms` is not known to have lasted. Times rise.
    """

    gap_ms: int
    since_ms: int | None = None
    """When the state that lasts began; None without one."""
    told: bool = False
    _last_ms: int = 0
    _seen: int = 0
    _gone: int = 0

    def on(self, at_ms: int, *, lasting_ms: int) -> int | None:
        """The state is seen. Return its beginning when it is to be told, which is once."""
        if not self.told and at_ms - self._last_ms > self.gap_ms:
            self._reset()
        if self.since_ms is None:
            self.since_ms = at_ms
        self._last_ms = at_ms
        self._seen += 1
        self._gone = 0
        if self.told or self._seen < 2 or at_ms - self.since_ms < lasting_ms:
            return None
        self.told = True
        return self.since_ms

    def unclear(self) -> None:
        """It is neither seen nor clearly gone: what was not told begins anew."""
        self._gone = 0
        if not self.told:
            self._reset()

    def off(self) -> None:
        """It is clearly gone; one that was told is over the second time in a row."""
        self._gone += 1
        if not self.told or self._gone >= 2:
            self._reset()

    def _reset(self) -> None:
        self.since_ms, self.told, self._seen, self._gone = None, False, 0, 0


class _Failed(NamedTuple):
    at_ms: int
    source: str
    party: str
    amount: int


@dataclass(slots=True)
class Failures:
    """Failures of one kind, told when there are `least` of them within `quiet_ms`.

    Two sources may tell of the same failures, so the larger count holds, not their sum. The episode
    begins with the first failure that counts and is over when none came for `quiet_ms`. One that
    comes behind its time counts as of the last. `least_parties` is of how many they must be.
    """

    quiet_ms: int
    least: int = 1
    least_parties: int = 1
    told: bool = False
    _recent: deque[_Failed] = field(default_factory=deque)

    def add(self, at_ms: int, source: str, count: int = 1, party: str = "") -> int | None:
        """Take failures; return when the episode began if it is to be told, which is once."""
        if self._recent:
            at_ms = max(at_ms, self._recent[-1].at_ms)
            self.told &= at_ms - self._recent[-1].at_ms < self.quiet_ms
        while self._recent and self._recent[0].at_ms <= at_ms - self.quiet_ms:
            self._recent.popleft()
        self._recent.append(_Failed(at_ms, source, party, count))
        if len(self._recent) > MAX_RECENT:
            self._recent.popleft()
        if self.told or self.count < self.least or self.parties < self.least_parties:
            return None
        self.told = True
        return self._recent[0].at_ms

    @property
    def count(self) -> int:
        """Failures within `quiet_ms` of the last one, by the source that counts more."""
        totals: dict[str, int] = {}
        for one in self._recent:
            totals[one.source] = totals.get(one.source, 0) + one.amount
        return max(totals.values(), default=0)

    @property
    def parties(self) -> int:
        """Of how many parties these are."""
        return len({one.party for one in self._recent})
