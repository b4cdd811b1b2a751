"""How much KV memory no request accounts for, and how surely that can be said.

At idle it is what is still used, exactly: cached blocks that nobody uses do not count as used.
Under load it can only be bounded, because requests share prefixes. What an engine calls used is
total minus available minus evictable by definition, so their sum always agrees and shows nothing.
"""

from collections import deque
from typing import Final, NamedTuple

from ingest.schema_records import Quality

SETTLE_MS: Final = 1_000
"""How long a rank must have been idle: an overlapped scheduler frees one step late."""

BUSY_SCRAPES: Final = 12
"""Scrapes whose lowest remainder counts under load (a minute, at 5 s): a prompt that is being read
in is used memory that no decode step has counted yet, and is over by then."""


class Fill(NamedTuple):
    """What one rank holds at one moment, in tokens; None is unknown.

    `is_whole`: the figures can be exact, because nothing that could explain used tokens is unknown.
    `running_tokens` are those of running requests, None if nothing says how many that are.
    """

    used_tokens: int | None
    held_tokens: int
    running_tokens: int | None
    is_idle: bool | None
    is_whole: bool


class Unreleased(NamedTuple):
    """The answer. `tokens` is None exactly if `quality` is unknown."""

    tokens: int | None
    quality: Quality


UNKNOWN: Final = Unreleased(None, Quality.UNKNOWN)


class RankMemory:
    """What must be remembered of one rank from scrape to scrape."""

    def __init__(self) -> None:
        self._idle_since_ms: int | None = None
        self._idle_used: int | None = None
        self._exact: int | None = None
        self._remainders: deque[int] = deque(maxlen=BUSY_SCRAPES)

    def interrupt(self) -> None:
        """A scrape failed: what was between is not known, and the engine may be another one."""
        self._idle_since_ms = self._idle_used = self._exact = None
        self._remainders.clear()

    def unreleased(self, fill: Fill, now_ms: int) -> Unreleased:
        """Return what is not released as of this scrape; scrapes come in the order of time."""
        if fill.used_tokens is None or fill.is_idle is None:
            self.interrupt()
            return UNKNOWN
        rest = max(0, fill.used_tokens - fill.held_tokens)
        if fill.is_idle:
            return self._at_idle(rest, fill, now_ms)
        return self._under_load(rest, fill)

    def _at_idle(self, rest: int, fill: Fill, now_ms: int) -> Unreleased:
        self._remainders.clear()
        if self._idle_since_ms is None or self._idle_used != fill.used_tokens:
            self._idle_since_ms, self._idle_used = now_ms, fill.used_tokens
        is_settled = now_ms - self._idle_since_ms >= SETTLE_MS
        if not (is_settled and fill.is_whole):
            return Unreleased(rest, Quality.ESTIMATE)
        self._exact = rest
        return Unreleased(rest, Quality.EXACT)

    def _under_load(self, rest: int, fill: Fill) -> Unreleased:
        """What was exact at idle is still there, unless less is used; a floor may show more."""
        self._idle_since_ms = self._idle_used = None
        if fill.running_tokens is not None:
            self._remainders.append(max(0, rest - fill.running_tokens))
        if len(self._remainders) == BUSY_SCRAPES:
            return Unreleased(min(self._remainders), Quality.ESTIMATE)
        if self._exact is not None:
            return Unreleased(min(self._exact, rest), Quality.ESTIMATE)
        return UNKNOWN
