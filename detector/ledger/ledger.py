"""The ownership ledger of all pools of a partition: events in, violations out; bounded."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Final

from detector.ledger.pool import PoolLedger
from detector.ledger.violation import Violation
from detector.runtime.records import Event

ENDS: Final = frozenset({"rejected", "aborted", "timed_out", "clear_failed"})
"""Kinds of events that say a request is over. A clear that failed was to end its use of a block."""

KINDS: Final = ENDS | {"allocated", "transferred", "reused", "released"}
"""What the ledger reads."""

MAX_POOLS: Final = 4_096
"""KV pools of one partition; the one silent for longest goes first."""

EndOf = Callable[[str, str, str | None], int | None]
"""Tells when a request (pool, id, tenant) ended, by its response, if that is known."""


class Ledger:
    """Remembers `max_blocks` blocks; those of the pool silent for longest are forgotten first.

    What was forgotten can be violated unseen, and accuses nobody. Deadlines pass by the event time
    of a pool's own events, since responses travel another way and may be far ahead of them.
    """

    def __init__(self, *, release_ms: int, max_blocks: int, end_of: EndOf) -> None:
        self._release_ms = release_ms
        self._max_blocks = max_blocks
        self._end_of = end_of
        self._pools: OrderedDict[str, PoolLedger] = OrderedDict()
        self._blocks = 0

    def __len__(self) -> int:
        """Blocks remembered."""
        return self._blocks

    def event(self, event: Event) -> Iterator[Violation]:
        """Take an event, those of one engine in order."""
        pool = self._pools.get(event.kv_pool)
        if pool is None:
            if event.kind in ENDS:
                return  # of a request that holds nothing
            pool = self._pools[event.kv_pool] = self._new(event.kv_pool)
        self._pools.move_to_end(event.kv_pool)
        before = len(pool)
        yield from self._take(pool, event)
        self._blocks += len(pool) - before
        pool.newest_ms = max(pool.newest_ms, event.at_ms)
        yield from pool.due(pool.newest_ms)
        self._make_room()

    def ended(self, kv_pool: str, request_id: str, tenant: str, at_ms: int) -> None:
        """Hear that a response has ended."""
        pool = self._pools.get(kv_pool)
        if pool is not None:
            pool.ended(request_id, tenant, at_ms)

    def due(self, now_ms: int) -> Iterator[Violation]:
        """Yield what is overdue at this event time; call it when nothing more is there to read."""
        for pool in list(self._pools.values()):
            yield from pool.due(now_ms)

    def _take(self, pool: PoolLedger, event: Event) -> Iterator[Violation]:
        match event.kind:
            case "allocated":
                pool.allocated(event)
            case "transferred":
                yield from pool.transferred(event)
            case "reused":
                yield from pool.reused(event)
            case "released":
                pool.released(event)
            case kind if kind in ENDS and event.request_id is not None:
                pool.ended(event.request_id, event.tenant, event.at_ms)
                if kind == "clear_failed":
                    pool.not_cleared(event)

    def _new(self, kv_pool: str) -> PoolLedger:
        return PoolLedger(
            kv_pool,
            release_ms=self._release_ms,
            end_of=lambda request_id, tenant: self._end_of(kv_pool, request_id, tenant),
        )

    def _make_room(self) -> None:
        while self._blocks > self._max_blocks:
            name, pool = next(iter(self._pools.items()))
            if not len(pool):
                del self._pools[name]
                continue
            pool.forget_oldest()
            self._blocks -= 1
        if len(self._pools) > MAX_POOLS:
            self._blocks -= len(self._pools.popitem(last=False)[1])
