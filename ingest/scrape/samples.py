"""From the reading of a rank to its runtime sample: sizes in tokens, counters as they are."""

import re
from typing import Final, NamedTuple

from ingest.schema_records import EngineRole, RuntimeSample
from ingest.scrape.mapping import Mapping
from ingest.scrape.reading import RankReading
from ingest.scrape.unreleased import Fill, RankMemory

MAX_RATIO: Final = 2.0
"""Engines round up; more than twice the pool is no measurement (as in the record)."""

WHOLE_BLOCKS: Final = 0.01
"""How far a share of the pool may be from a whole number of blocks: else it is not a share of the
blocks that we know, and what is made of it is an estimate."""

_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}")


class EngineName(NamedTuple):
    """What an engine is called in records; `rank` is None where there is only one."""

    engine: str
    kv_pool: str
    rank: int | None
    role: EngineRole | None
    """As configured."""


class _Pool(NamedTuple):
    pool_tokens: int | None
    used_tokens: int | None
    is_whole: bool


def sample_of(
    reading: RankReading, mapping: Mapping, memory: RankMemory, name: EngineName, now_ms: int
) -> RuntimeSample:
    """Return the sample of one rank. What the engine does not tell is absent."""
    numbers = reading.numbers
    pool = _pool(reading, mapping)
    role = name.role or mapping.roles.get(reading.texts.get("role", ""))
    unreleased = memory.unreleased(_fill(reading, mapping, pool, role), now_ms)
    version = reading.texts.get("engine_version", "")
    return RuntimeSample(
        engine=name.engine,
        kv_pool=name.kv_pool,
        rank=name.rank,
        sampled_at_ms=now_ms,
        engine_kind=mapping.engine_kind,
        engine_version=version if _VERSION.fullmatch(version) else None,
        role=role,
        pool_tokens=pool.pool_tokens,
        configured_pool_tokens=_count(numbers.get("configured_pool_tokens")),
        context_tokens=_count(numbers.get("context_tokens")),
        max_input_tokens=_count(numbers.get("max_input_tokens")),
        used_tokens=pool.used_tokens,
        evictable_tokens=_count(numbers.get("evictable_tokens")),
        running_requests=_count(numbers.get("running_requests")),
        queued_requests=_count(numbers.get("queued_requests")),
        unreleased_tokens=unreleased.tokens,
        unreleased_quality=unreleased.quality,
        clear_failures_total=reading.counters.get("clear_failures"),
        metadata_mismatches_total=reading.counters.get("metadata_mismatches"),
        transfer_failures_total=reading.counters.get("transfer_failures"),
        pool_usage_ratio=_ratio(numbers.get("pool_usage_ratio"), pool),
    )


def _pool(reading: RankReading, mapping: Mapping) -> _Pool:
    """Return size and fill in tokens, out of blocks where the engine counts in blocks."""
    numbers = reading.numbers
    pool, used = _count(numbers.get("pool_tokens")), _count(numbers.get("used_tokens"))
    blocks, size = _count(numbers.get("pool_blocks")), _count(numbers.get("block_tokens"))
    if not blocks or not size or blocks <= mapping.reserved_blocks:
        return _Pool(pool, used, is_whole=used is not None)
    usable = blocks - mapping.reserved_blocks
    share = numbers.get("pool_usage_ratio")
    is_whole = used is not None
    if used is None and share is not None and share <= MAX_RATIO:
        used = round(share * usable) * size
        is_whole = abs(share * usable - round(share * usable)) <= WHOLE_BLOCKS
    return _Pool(usable * size if pool is None else pool, used, is_whole=is_whole)


def _fill(reading: RankReading, mapping: Mapping, pool: _Pool, role: EngineRole | None) -> Fill:
    numbers = reading.numbers
    running, queued = numbers.get("running_requests"), numbers.get("queued_requests")
    is_idle = None
    if running is not None and queued is not None:
        is_idle = running == 0 and queued == 0 and reading.waits == 0
    running_tokens = _count(numbers.get("running_tokens"))
    return Fill(
        used_tokens=pool.used_tokens if mapping.unreleased == "used_at_idle" else None,
        held_tokens=_count(numbers.get("held_tokens")) or 0,
        # an engine that decodes nothing does not count what its requests hold
        running_tokens=running_tokens if running_tokens and role != EngineRole.PREFILL else None,
        is_idle=is_idle,
        is_whole=reading.has_metrics
        and reading.is_in_step
        and not reading.has_connector
        and pool.is_whole,
    )


def _ratio(told: float | None, pool: _Pool) -> float | None:
    if told is None and pool.used_tokens is not None and pool.pool_tokens:
        told = pool.used_tokens / pool.pool_tokens
    return told if told is not None and told <= MAX_RATIO else None


def _count(value: float | None) -> int | None:
    return None if value is None else int(value)
