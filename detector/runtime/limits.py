"""How long a prompt each engine accepts as it runs, and which limit held for a request."""

from typing import Final, NamedTuple

from detector.runtime.records import PREFILL, Sample

MAX_CHANGES: Final = 8
"""Changes of a limit remembered of one engine: each is a restart."""

MAX_ENGINES: Final = 4_096
"""Engines remembered in one partition; the one that was heard of first goes first."""

INPUT_MARGIN: Final = 6
"""SGLang rejects a prompt of min(context, pool) - 6 tokens or more (managers/tp_worker.py: one for
each of the two, five for the answer)."""


class Limit(NamedTuple):
    """A limit in tokens and since when it holds; whether the record that told it is news."""

    since_ms: int
    tokens: int
    is_news: bool


def input_limit(sample: Sample) -> int | None:
    """Return from which length on a rank rejects prompts, None if what it tells is not enough."""
    if sample.max_input_tokens is not None:
        return sample.max_input_tokens
    context, pool = sample.context_tokens, sample.pool_tokens
    if sample.engine_kind == "vllm":
        return context
    if context is None or pool is None:
        return None
    return min(context, pool) - (INPUT_MARGIN if sample.engine_kind == "sglang" else 0)


class _Engine:
    """The limits of one engine in the order of time; the first holds for all time before."""

    def __init__(self) -> None:
        self.limits: list[Limit] = []
        self.is_prefill = False
        self._ranks: dict[int, int] = {}

    def highest(self, rank: int | None, tokens: int) -> int:
        """Return the highest limit that its ranks have told, each the last time."""
        if rank is None:
            return tokens
        self._ranks[rank] = tokens
        return max(self._ranks.values())

    def add(self, limit: Limit) -> bool:
        """Take a limit, in the order of time; True if it is the first."""
        if self.limits and self.limits[-1].tokens == limit.tokens:
            return False
        self.limits.append(limit)
        del self.limits[:-MAX_CHANGES]
        return len(self.limits) == 1

    def between(self, first_ms: int, last_ms: int) -> Limit | None:
        """Return the highest limit in force in a time."""
        if not self.limits:
            return None
        before = [one for one in self.limits if one.since_ms <= first_ms]
        within = [one for one in self.limits if first_ms < one.since_ms <= last_ms]
        held = (before[-1:] or self.limits[:1]) + within
        return max(held, key=lambda one: one.tokens)


class Limits:
    """The limits of all engines of a partition, by pool."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, _Engine]] = {}
        self._engines = 0

    def add(self, sample: Sample, *, is_news: bool) -> bool:
        """Take a sample, those of one engine in order; True if no limit of it was known before.

        Ranks of one engine have pools of their own: the highest of what they tell at a time holds.
        """
        known = [sample.max_input_tokens, sample.pool_tokens, sample.context_tokens]
        told = [tokens for tokens in known if tokens]
        if not told:
            return False
        engine = self._engine(sample.kv_pool, sample.engine)
        engine.is_prefill |= sample.role == PREFILL
        tokens = engine.highest(sample.rank, min(told))
        return engine.add(Limit(sample.sampled_at_ms, tokens, is_news))

    def of_request(self, kv_pool: str, engine: str, first_ms: int, last_ms: int) -> Limit | None:
        """Return the highest limit that held for a request, None if it is not known.

        Where a pool has engines that only read prompts, one of them has read it; else the engine
        that answered has.
        """
        engines = self._of.get(kv_pool, {})
        readers = [one for one in engines.values() if one.is_prefill]
        if not readers and engine in engines:
            readers = [engines[engine]]
        limits = [one.between(first_ms, last_ms) for one in readers]
        known = (limit for limit in limits if limit is not None)
        return max(known, key=lambda one: one.tokens, default=None)

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
