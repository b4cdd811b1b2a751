"""The ledger of one KV pool: which request holds which block, and what it may not do with it.

Events of an engine come in the order of its clock. What is unknown accuses nobody: a block of which
no allocation was seen may have been anybody's.
"""

import heapq
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from detector.ledger.violation import Breach, Holder, Violation
from detector.runtime.records import Event

KEPT: Final = "kept"
SHARED: Final = "shared"
"""Details of releases after which a block is still there: approved for reuse, or not any more."""

SPARE_DUE: Final = 1_024
"""Deadlines of requests that hold nothing any more, kept at most beside as many again as hold
something; they go by themselves once event time passes them."""


@dataclass(slots=True, eq=False)
class _Request:
    holder: Holder
    engine: str
    since_ms: int
    holds: "dict[str, _Block]" = field(default_factory=dict)
    ended_at_ms: int | None = None
    is_waited_for: bool = False
    is_told: bool = False


@dataclass(slots=True, eq=False)
class _Block:
    origin: Holder
    users: dict[_Request, None]
    latest_ms: int
    kept_until_ms: int | None = None
    is_gone: bool = False


EndOf = Callable[[str, str | None], int | None]
"""Tells when a request (id, tenant) ended, by its response, if that is known."""


class PoolLedger:
    """Give it the events of one pool; each method yields what is violated.

    A request that has ended must have released its blocks `release_ms` later.
    """

    def __init__(self, kv_pool: str, *, release_ms: int, end_of: EndOf) -> None:
        self.newest_ms = 0
        self._kv_pool = kv_pool
        self._release_ms = release_ms
        self._end_of = end_of
        self._blocks: OrderedDict[str, _Block] = OrderedDict()
        self._stale: OrderedDict[tuple[str, _Request], None] = OrderedDict()
        """Blocks that were given to others while a request held them still."""
        self._requests: dict[str, list[_Request]] = {}
        self._due: list[tuple[int, int, _Request]] = []
        self._count = 0

    def __len__(self) -> int:
        """Holds remembered: blocks, and what was held of them before they were given to others."""
        return len(self._blocks) + len(self._stale)

    def allocated(self, event: Event) -> None:
        """A request got a block for content of its own."""
        if event.block is None or event.request_id is None or self._is_past(event):
            return
        request, known = self._begun(event), self._blocks.get(event.block)
        for user in () if known is None else known.users:
            self._stale[event.block, user] = None
        self._blocks[event.block] = _Block(request.holder, {request: None}, event.at_ms)
        self._hold(request, event.block)

    def transferred(self, event: Event) -> Iterator[Violation]:
        """KV was handed over, or taken in, under a label."""
        known = None if event.block is None else self._blocks.get(event.block)
        origin = None if known is None or known.is_gone else known.origin
        if None in (event.tenant, event.request_id, event.created_at_ms):
            yield self._violation(Breach.TRANSFER_UNLABELLED, event, origin)
            return
        self._goes_on(self._known(event), event)
        foreign = _foreign(event, origin)
        if foreign is not None:
            yield self._violation(Breach.TRANSFER_OTHER_TENANT, event, foreign)

    def reused(self, event: Event) -> Iterator[Violation]:
        """A request uses what another has stored."""
        if self._is_past(event):
            return
        known = None if event.block is None else self._blocks.get(event.block)
        origin = None if known is None else known.origin
        foreign = _foreign(event, origin)
        until_ms = event.expires_at_ms
        if foreign is not None:
            yield self._violation(Breach.REUSE_OTHER_TENANT, event, foreign)
        elif known is not None and known.is_gone:
            yield self._violation(Breach.REUSE_AFTER_RELEASE, event, origin)
        elif known is not None and known.kept_until_ms is None:
            yield self._violation(Breach.REUSE_NOT_APPROVED, event, origin)
        else:
            until_ms = until_ms if known is None else known.kept_until_ms
            if until_ms is not None and event.at_ms >= until_ms:
                late = {"late_ms": event.at_ms - until_ms}
                yield self._violation(Breach.REUSE_PAST_TTL, event, origin, late)
        if known is not None and event.block is not None and event.request_id is not None:
            request = self._begun(event)
            known.latest_ms = event.at_ms
            if not known.is_gone:
                known.users[request] = None
                self._hold(request, event.block)

    def released(self, event: Event) -> None:
        """A request let go of a block; unless it is kept or shared, the block is invalid now."""
        if event.block is None:
            return
        request = self._known(event)
        known = self._blocks.get(event.block)
        held = None if request is None else request.holds.get(event.block)
        if request is not None:
            self._let_go(request, event.block)
        if known is None or self._is_past(event):
            return
        if held not in (None, known):
            return  # its place was given to others before it was released
        known.latest_ms = event.at_ms
        if request is not None:
            known.users.pop(request, None)
        known.kept_until_ms = event.expires_at_ms if event.detail == KEPT else None
        if event.detail not in (KEPT, SHARED):
            known.is_gone = True
            for user in known.users:
                self._let_go(user, event.block)
            known.users.clear()

    def not_cleared(self, event: Event) -> None:
        """A block could not be invalidated: nobody may reuse it."""
        known = self._blocks.get(event.block or "")
        if known is not None and not self._is_past(event):
            known.kept_until_ms = None

    def ended(self, request_id: str, tenant: str | None, at_ms: int) -> None:
        """A request is over: its response is there, or it was given up. `tenant` may be unknown."""
        for request in self._requests.get(request_id, ()):
            if None in (tenant, request.holder.tenant) or tenant == request.holder.tenant:
                self._end(request, at_ms)

    def due(self, now_ms: int) -> Iterator[Violation]:
        """Yield the requests whose time to release is over at this event time."""
        while self._due and self._due[0][0] <= now_ms:
            due_ms, _, request = heapq.heappop(self._due)
            request.is_waited_for = False
            ended_ms = request.ended_at_ms
            if not request.holds or request.is_told or ended_ms is None:
                continue
            if ended_ms + self._release_ms > due_ms:
                self._wait_for(request)
                continue
            request.is_told = True
            yield Violation(
                Breach.NOT_RELEASED, due_ms, self._kv_pool, request.engine, request.holder,
                None, min(request.holds), {"blocks": len(request.holds)},
            )  # fmt: skip

    def forget_oldest(self) -> None:
        """Make room: forget the oldest hold."""
        if self._stale:
            (tag, request), _ = self._stale.popitem(last=False)
            self._let_go(request, tag)
        elif self._blocks:
            tag, block = self._blocks.popitem(last=False)
            for user in block.users:
                self._let_go(user, tag)

    def _is_past(self, event: Event) -> bool:
        """Tell an event that is older than the last of its block: a repeat, or too late."""
        known = self._blocks.get(event.block or "")
        return known is not None and event.at_ms < known.latest_ms

    def _violation(
        self,
        breach: Breach,
        event: Event,
        origin: Holder | None,
        numbers: dict[str, int] | None = None,
    ) -> Violation:
        holder = Holder(event.tenant, event.request_id, event.created_at_ms)
        return Violation(
            breach, event.at_ms, self._kv_pool, event.engine, holder, origin, event.block,
            numbers or {},
        )  # fmt: skip

    def _known(self, event: Event) -> _Request | None:
        for request in self._requests.get(event.request_id or "", ()):
            tenant, _, created_ms = request.holder
            same_tenant = None in (event.tenant, tenant) or event.tenant == tenant
            is_same = None in (event.created_at_ms, created_ms) or event.created_at_ms == created_ms
            if same_tenant and is_same:
                return request
        return None

    def _begun(self, event: Event) -> _Request:
        """Return the request that an event is of, which goes on; make it if it is not known."""
        assert event.request_id is not None
        request = self._known(event)
        if request is not None:
            self._goes_on(request, event)
            return request
        holder = Holder(event.tenant, event.request_id, event.created_at_ms)
        request = _Request(holder, event.engine, event.at_ms)
        self._requests.setdefault(event.request_id, []).append(request)
        ended_ms = self._end_of(event.request_id, event.tenant)
        if ended_ms is not None:
            self._end(request, ended_ms)
        return request

    def _goes_on(self, request: _Request | None, event: Event) -> None:
        """Hear of a request: an end before that was not its end."""
        if request is None or request.ended_at_ms is None:
            return
        if request.ended_at_ms <= event.at_ms:
            request.ended_at_ms = None

    def _end(self, request: _Request, at_ms: int) -> None:
        """Note when a request ended; what tells it again does not move its deadline."""
        if at_ms >= request.since_ms and request.ended_at_ms is None:
            request.ended_at_ms = at_ms
            self._wait_for(request)

    def _wait_for(self, request: _Request) -> None:
        """Look at a request again when its time to release is over."""
        if request.ended_at_ms is None or request.is_waited_for or not request.holds:
            return
        if len(self._due) > 2 * len(self._requests) + SPARE_DUE:
            self._due = [one for one in self._due if one[-1].holds]
            heapq.heapify(self._due)
        request.is_waited_for = True
        self._count += 1
        heapq.heappush(self._due, (request.ended_at_ms + self._release_ms, self._count, request))

    def _hold(self, request: _Request, block: str) -> None:
        self._stale.pop((block, request), None)
        request.holds[block] = self._blocks[block]
        self._blocks.move_to_end(block)
        self._wait_for(request)

    def _let_go(self, request: _Request, block: str) -> None:
        """Note that a request holds a block no more; who holds none is forgotten."""
        request.holds.pop(block, None)
        self._stale.pop((block, request), None)
        same = self._requests.get(request.holder.request_id or "", [])
        if not request.holds and request in same:
            same.remove(request)
            if not same:
                del self._requests[request.holder.request_id or ""]


def _foreign(event: Event, origin: Holder | None) -> Holder | None:
    """Return whose memory it is if that is another tenant's than the event says."""
    if event.tenant is None:
        return None
    if event.other_tenant is not None and event.other_tenant != event.tenant:
        known = origin is not None and origin.tenant == event.other_tenant
        return origin if known else Holder(event.other_tenant, None, None)
    if origin is not None and origin.tenant not in (None, event.tenant):
        return origin
    return None
