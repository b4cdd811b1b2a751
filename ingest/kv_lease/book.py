"""Keeps account of the KV blocks of one process: who holds each, until when, and what became of it.

The order is that of a crash that may come at any time: what begins is written down first, what
ends is done first. So what a file says is open may be closed already, and never the other way.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from .errors import BlockTakenError, ReuseRefusedError
from .events import Event, Owner
from .lease import End, Lease
from .recovery import left_open
from .tags import BlockTagger

LEASE_MS: Final = 30_000
"""How long a lease may last unless told otherwise: the lease of vLLM's NIXL connector."""

_KIND_OF: Final = {
    End.REJECTED: "rejected",
    End.TIMED_OUT: "timed_out",
    End.CANCELLED: "aborted",
    End.EXCEPTION: "aborted",
}


@dataclass(slots=True)
class _Block:
    origin: Owner
    """Whose content it holds."""
    last: Owner
    """Who held it last."""
    users: list[Lease] = field(default_factory=list)
    kept_until_ms: int | None = None
    """Until when it may be reused; None while it may not."""
    why: str | None = None
    """Why it must be invalidated once nobody holds it."""


class Book:
    """Gives out leases and ends them. Any thread may call any method.

    `invalidate` makes a block unreadable and free, and returns only when nothing writes into it any
    more; one that raises is told as `clear_failed` and tried again by `sweep`, and meanwhile the
    block is not given out. `audit` takes each event, `Journal` for example; where it raises,
    nothing new begins, and what ends still ends and is counted as `unrecorded`. Blocks are handles
    such as page numbers, unique in `memory`, which is the engine's own unless named.
    """

    def __init__(
        self,
        *,
        engine: str,
        kv_pool: str,
        key: bytes,
        audit: Callable[[Event], None],
        invalidate: Callable[[str], object],
        memory: str | None = None,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.counts: Counter[str] = Counter()
        """unrecorded, clear_failed, and reuses that were refused, by reason."""
        self.now_ms = clock
        self._engine = engine
        self._kv_pool = kv_pool
        self._tagger = BlockTagger(key, engine if memory is None else memory)
        self._audit = audit
        self._invalidate = invalidate
        self._blocks: dict[str, _Block] = {}
        self._lock = threading.RLock()

    @property
    def open_blocks(self) -> int:
        """Blocks that are not invalidated: held, kept, or waiting to be tried again."""
        return len(self._blocks)

    def lease(self, owner: Owner, block: str, *, for_ms: int = LEASE_MS) -> Lease:
        """Give a block that is being allocated to a request; a cached one is invalidated first.

        Raises BlockTakenError, and whatever `audit` raises.
        """
        with self._lock:
            known = self._blocks.get(block)
            if known is not None and not known.users:
                self._clear(block, known.why or "evicted")
            if block in self._blocks:
                raise BlockTakenError("taken", "the KV block is held, or could not be invalidated")
            expires_at_ms = self.now_ms() + for_ms
            tag = self._tagger.tag(block)
            self._audit(self._event("allocated", owner, tag, expires_at_ms=expires_at_ms))
            self._blocks[block] = _Block(owner, owner)
            return self._given(owner, block, expires_at_ms, is_reuse=False)

    def reuse(self, owner: Owner, block: str, *, for_ms: int = LEASE_MS) -> Lease:
        """Give a cached block to a request of the tenant whose content it holds.

        Raises ReuseRefusedError unless that was approved and its time is not over, and whatever
        `audit` raises.
        """
        with self._lock:
            known = self._blocks.get(block)
            reason = self._refusal(owner, known)
            if known is None or reason is not None:
                self.counts[reason or "unknown"] += 1
                raise ReuseRefusedError(
                    reason or "unknown", f"the KV block may not be reused: {reason or 'unknown'}"
                )
            tag, until_ms = self._tagger.tag(block), known.kept_until_ms
            self._audit(self._event("reused", owner, tag, expires_at_ms=until_ms))
            return self._given(owner, block, self.now_ms() + for_ms, is_reuse=True)

    def drop(self, block: str) -> None:
        """Invalidate a cached block, to make room; one that is held goes when it is let go."""
        with self._lock:
            known = self._blocks.get(block)
            if known is None:
                return
            known.kept_until_ms, known.why = None, known.why or "evicted"
            if not known.users:
                self._clear(block, known.why)

    def sweep(self) -> None:
        """End what is overdue and try again what failed. Call it every second or so."""
        with self._lock:
            now_ms = self.now_ms()
            for block, known in list(self._blocks.items()):
                for lease in [one for one in known.users if now_ms >= one.expires_at_ms]:
                    self.end(lease, End.TIMED_OUT)
                if block in self._blocks and not known.users:
                    if known.why is not None:
                        self._clear(block, known.why)
                    elif known.kept_until_ms is None or now_ms >= known.kept_until_ms:
                        self._clear(block, "expired")

    def recover(self, events: Iterable[Event], blocks: Iterable[str] = ()) -> int:
        """Invalidate what a process that crashed has left; return how many blocks that were.

        `events` are those of its file, `blocks` what the memory still holds if it has outlived the
        process. Call it before the first lease.
        """
        with self._lock:
            handles = {self._tagger.tag(one): one for one in blocks}
            left = left_open(events, self._engine)
            for tag, owner in left.items():
                block = handles.get(tag)
                if block is None:
                    self._tell("released", owner, tag, detail="crashed")
                elif block not in self._blocks:
                    self._blocks[block] = _Block(owner, owner, why="crashed")
                    self._clear(block, "crashed")
            return len(left)

    def transferred(self, lease: Lease, *, detail: str | None = None) -> None:
        """See `Keeper`."""
        expires_at_ms = lease.expires_at_ms
        with self._lock:
            tag = self._tagger.tag(lease.block)
            self._audit(
                self._event(
                    "transferred", lease.owner, tag, detail=detail, expires_at_ms=expires_at_ms
                )
            )

    def mismatched(self, lease: Lease, reason: str, *, other_tenant: str | None) -> None:
        """Write down that KV has come that is not that of the request that waits for it."""
        with self._lock:
            tag = self._tagger.tag(lease.block)
            self._tell(
                "metadata_mismatch", lease.owner, tag, detail=reason, other_tenant=other_tenant
            )

    def end(self, lease: Lease, how: End, *, detail: str | None = None) -> None:
        """See `Keeper`."""
        with self._lock:
            if lease.ended is not None:
                return
            lease.ended = how
            known = self._blocks[lease.block]
            known.users.remove(lease)
            known.last = lease.owner
            if how is not End.FINISHED:
                known.kept_until_ms, known.why = None, known.why or how.value
            elif lease.keep_ms is not None and known.why is None:
                known.kept_until_ms = self.now_ms() + lease.keep_ms
            tag = self._tagger.tag(lease.block)
            if how in _KIND_OF:
                self._tell(_KIND_OF[how], lease.owner, tag, detail=detail or how.value)
            until_ms = known.kept_until_ms
            if until_ms is not None:
                self._tell("released", lease.owner, tag, detail="kept", expires_at_ms=until_ms)
            elif known.users:
                self._tell("released", lease.owner, tag, detail="shared")
            else:
                self._clear(lease.block, known.why or how.value)

    def _given(self, owner: Owner, block: str, expires_at_ms: int, *, is_reuse: bool) -> Lease:
        lease = Lease(self, owner, block, expires_at_ms=expires_at_ms, is_reuse=is_reuse)
        self._blocks[block].users.append(lease)
        return lease

    def _refusal(self, owner: Owner, known: _Block | None) -> str | None:
        if known is None:
            return "unknown"
        if known.origin.tenant != owner.tenant:
            return "tenant_differs"
        if known.kept_until_ms is None:
            return "not_approved"
        return "past_ttl" if self.now_ms() >= known.kept_until_ms else None

    def _clear(self, block: str, why: str) -> None:
        """Invalidate a block that nobody holds; where that fails it stays, to be tried again."""
        known = self._blocks[block]
        known.kept_until_ms, known.why = None, why
        tag = self._tagger.tag(block)
        try:
            self._invalidate(block)
        except Exception:  # noqa: BLE001 - whatever it was, the block is not clean
            self.counts["clear_failed"] += 1
            self._tell("clear_failed", known.last, tag, detail="invalidate")
            return
        del self._blocks[block]
        self._tell("released", known.last, tag, detail=why)

    def _tell(
        self,
        kind: str,
        owner: Owner,
        tag: str,
        *,
        detail: str,
        expires_at_ms: int | None = None,
        other_tenant: str | None = None,
    ) -> None:
        """Write down what has been done already: it stays done if it cannot be written."""
        event = self._event(
            kind, owner, tag, detail=detail, expires_at_ms=expires_at_ms, other_tenant=other_tenant
        )
        try:
            self._audit(event)
        except Exception:  # noqa: BLE001 - a full disk must not keep a block alive
            self.counts["unrecorded"] += 1

    def _event(
        self,
        kind: str,
        owner: Owner,
        tag: str,
        *,
        detail: str | None = None,
        expires_at_ms: int | None = None,
        other_tenant: str | None = None,
    ) -> Event:
        return Event(
            kind=kind,
            engine=self._engine,
            kv_pool=self._kv_pool,
            at_ms=self.now_ms(),
            request_id=owner.request_id,
            tenant=owner.tenant,
            other_tenant=other_tenant,
            block=tag,
            created_at_ms=owner.created_at_ms,
            expires_at_ms=expires_at_ms,
            detail=detail,
        )
