"""How long a prompt each engine accepts as it runs, and which of these limits held for a request."""

from bisect import insort
from typing import Final, NamedTuple

from detector.runtime.records import PREFILL, Sample

MAX_CHANGES: Final = 8
"""Changes of a limit remembered of one engine: each is a restart."""

MAX_ENGINES: Final = 4_096
"""Engines remembered in one partition; the one that was heard of first goes first."""


class _Limit(NamedTuple):
    since_ms: int
    tokens: int


class _Engine:
    """The limits of one engine in the order of time; the first holds for all time before."""

    def __init__(self) -> None:
        self.limits: list[_Limit] = []
        self.is_prefill = False

    def add(self, at_ms: int, tokens: int) -> bool:
        """Take a limit; True if it tells something new."""
        at = sum(one.since_ms <= at_ms for one in self.limits)
        if at and self.limits[at - 1].tokens == tokens:
            return False
        if at < len(self.limits) and self.limits[at].tokens == tokens:
            self.limits[at] = _Limit(at_ms, tokens)
            return True
        insort(self.limits, _Limit(at_ms, tokens))
        del self.limits[:-MAX_CHANGES]
        return True

    def between(self, first_ms: int, last_ms: int) -> int | None:
        """Return the highest limit in force in a time."""
        if not self.limits:
            return None
        before = [one for one in self.limits if one.since_ms <= first_ms]
        within = [one for one in self.limits if first_ms < one.since_ms <= last_ms]
        held = (before[-1:] or self.limits[:1]) + within
        return max(one.tokens for one in held)


class Limits:
    """The limits of all engines of a partition, by pool."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, _Engine]] = {}
        self._engines = 0

    def add(self, sample: Sample) -> bool:
        """Take a sample; True if the limit that it tells is new for the engine.

        Ranks of one engine have pools of their own: the highest of what they tell at a time holds.
        """
        known = [sample.max_input_tokens, sample.pool_tokens, sample.context_tokens]
        told = [tokens for tokens in known if tokens]
        if not told:
            return False
        engine = self._engine(sample.kv_pool, sample.engine)
        engine.is_prefill |= sample.role == PREFILL
        limit = min(told)
        if sample.rank is not None:
            limit = max(limit, engine.between(sample.sampled_at_ms, sample.sampled_at_ms) or 0)
        return engine.add(sample.sampled_at_ms, limit)

    def of_request(self, kv_pool: str, engine: str, first_ms: int, last_ms: int) -> int | None:
        """Return the highest limit that held for a request, None if it is not known.

        Where a pool has engines that only read prompts, one of them has read it; else the engine
        that answered has.
        """
        engines = self._of.get(kv_pool, {})
        readers = [one for one in engines.values() if one.is_prefill]
        if not readers and engine in engines:
            readers = [engines[engine]]
        limits = [one.between(first_ms, last_ms) for one in readers]
        return max((limit for limit in limits if limit is not None), default=None)

    def _engine(self, kv_pool: str, name: str) -> _Engine:
        pool = self._of.setdefault(kv_pool, {})
        if name not in pool:
            pool[name] = _Engine()
            self._engines += 1
            self._make_room(keep=kv_pool)
        return pool[name]

    def _make_room(self, *, keep: str) -> None:
        while self._engines > MAX_ENGINES and len(self._of) > 1:
            oldest = next(pool for pool in self._of if pool != keep)
            self._engines -= len(self._of.pop(oldest))
