"""Should engines admit more requests? The answer by how full their KV pools are, with hysteresis.

What is not known never stops traffic: the monitor must not become the fault.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from ingest.push.settings import BackPressureSettings
from ingest.schema_records import RuntimeSample

MAX_POOLS: Final = 1_024
"""Pools that are remembered; the one that was heard of longest ago is forgotten."""


class PoolPressure(msgspec.Struct, frozen=True):
    """One pool of one engine. `state` is "admit", "stop" or "unknown"."""

    engine: str
    kv_pool: str
    rank: int | None
    state: str
    pool_usage_ratio: float
    age_ms: int


class Pressure(msgspec.Struct, frozen=True):
    """The answer: `admit` is false while any of the pools asked for says "stop"."""

    admit: bool
    stop_above: float
    resume_below: float
    pools: list[PoolPressure]


@dataclass(slots=True)
class _Pool:
    kv_pool: str
    usage: float
    is_stopped: bool
    heard_s: float


class BackPressure:
    """Remembers the last usage of every pool; for any thread. `clock` never goes back."""

    def __init__(self, settings: BackPressureSettings, *, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._pools: OrderedDict[tuple[str, int | None], _Pool] = OrderedDict()

    def hear(self, sample: RuntimeSample) -> None:
        """Hear of an engine; a sample that does not know the usage changes nothing."""
        usage = sample.pool_usage_ratio
        if usage is None:
            return
        key = sample.engine, sample.rank
        with self._lock:
            before = self._pools.pop(key, None)
            was_stopped = before is not None and before.is_stopped and not self._is_stale(before)
            is_stopped = usage > self._settings.stop_above or (
                was_stopped and usage >= self._settings.resume_below
            )
            self._pools[key] = _Pool(sample.kv_pool, usage, is_stopped, self._clock())
            if len(self._pools) > MAX_POOLS:
                self._pools.popitem(last=False)

    def look(self, *, engine: str | None = None, kv_pool: str | None = None) -> Pressure:
        """Answer for all pools, or for those of one engine or one KV pool."""
        with self._lock:
            pools = [
                self._seen(name, rank, pool)
                for (name, rank), pool in sorted(self._pools.items(), key=_order)
                if engine in {None, name} and kv_pool in {None, pool.kv_pool}
            ]
        return Pressure(
            admit=all(pool.state != "stop" for pool in pools),
            stop_above=self._settings.stop_above,
            resume_below=self._settings.resume_below,
            pools=pools,
        )

    def _seen(self, engine: str, rank: int | None, pool: _Pool) -> PoolPressure:
        state = "stop" if pool.is_stopped else "admit"
        return PoolPressure(
            engine=engine,
            kv_pool=pool.kv_pool,
            rank=rank,
            state="unknown" if self._is_stale(pool) else state,
            pool_usage_ratio=pool.usage,
            age_ms=round((self._clock() - pool.heard_s) * 1000),
        )

    def _is_stale(self, pool: _Pool) -> bool:
        return self._clock() - pool.heard_s > self._settings.stale_ms / 1000


def _order(item: tuple[tuple[str, int | None], _Pool]) -> tuple[str, int]:
    (engine, rank), _ = item
    return engine, -1 if rank is None else rank
