"""Randomised lives of KV leases on two engines, with faults at every step, and runtimes that cheat.

The book must leave no block behind and approve no wrong reuse; the ledger must find exactly what
the definition says is violated, and the audit the links that the model has seen.
"""

from asyncio import CancelledError
from collections import Counter
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)

from detector.ledger.ledger import Ledger
from detector.ledger.trail import Subject, Trail
from detector.ledger.violation import Breach, Violation
from ingest.kv_lease.errors import (
    BlockTakenError,
    KvRefusedError,
    LeaseEndedError,
    ReuseRefusedError,
)
from ingest.kv_lease.events import Event, Owner
from ingest.kv_lease.tags import BlockTagger
from ingest.schema import Encoding, decode
from ingest.schema_records import EngineEvent
from tests.unit.lease_oracle import Told, violations
from tests.unit.lease_station import KEY, POOL, Clock, Crash, Engine, FaultError

RELEASE_MS = 60_000
TENANTS = st.sampled_from(["acme", "globex"])
BLOCKS = st.sampled_from([f"page {number}" for number in range(3)])
FAULTS = st.sampled_from(
    [FaultError, TimeoutError, CancelledError, KeyboardInterrupt, GeneratorExit]
)
LABEL_FAULTS = {
    "tenant": ("no_tenant", "tenant_differs", "hooli"),
    "request_id": ("no_request_id", "request_id_differs", "other"),
    "created_at_ms": ("no_creation_time", "creation_time_differs", 7),
}


class Lifecycles(RuleBasedStateMachine):
    """Prefill engine 0, decode engine 1, one ledger that reads what both write."""

    leases = Bundle("leases")
    seen: ClassVar[Counter[str]] = Counter()
    """What all runs have seen: leases that were begun, and what became of things."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.events: list[Event] = []
        self.found: list[Violation] = []
        self.ledger = Ledger(release_ms=RELEASE_MS, max_blocks=1_000, end_of=unknown)
        self.engines = [Engine(name, self.clock, self.tell) for name in ("prefill", "decode")]
        self.requests = 0
        self.checked = (0, 0)

    def tell(self, event: Event) -> None:
        """Take a record as a worker gets it: over the wire."""
        self.events.append(event)
        self.found += self.ledger.event(decode(EngineEvent, event.line(), Encoding.JSON))

    def owner(self, tenant: str) -> Owner:
        self.requests += 1
        return Owner(tenant, f"r{self.requests}", self.clock.ms)

    def tag(self, engine: Engine, block: str) -> str:
        return BlockTagger(KEY, engine.name).tag(block)

    def survive(self, engine: Engine, act: Any, *, memory_survives: bool = True) -> Any:
        """Do something; if the process dies meanwhile, start it again."""
        try:
            return act()
        except Crash:
            Lifecycles.seen["crashes"] += 1
            engine.restart(memory_survives=memory_survives)
            return None

    @rule(target=leases, at=st.integers(0, 1), tenant=TENANTS, seconds=st.integers(1, 90),
          blocks=st.lists(BLOCKS, min_size=1, max_size=3, unique=True))  # fmt: skip
    def begin(self, at: int, tenant: str, blocks: list[str], seconds: int) -> Any:
        owner = self.owner(tenant)
        return multiple(*(one for block in blocks for one in self.given(at, owner, block, seconds)))

    @rule(target=leases, held=leases, block=BLOCKS)
    def prepare(self, held: Any, block: str) -> Any:
        """The decode side makes room for what a request of the prefill side will send."""
        return multiple(*self.given(1, held[2].owner, block, 60))

    def given(self, at: int, owner: Owner, block: str, seconds: int) -> list[Any]:
        engine = self.engines[at]
        try:
            lease = self.survive(
                engine, lambda: engine.book.lease(owner, block, for_ms=seconds * 1_000)
            )
        except BlockTakenError:
            return []
        if lease is None:
            return []
        assert block not in engine.memory, "given out before it was invalidated"
        Lifecycles.seen["leases"] += 1
        engine.memory[block] = owner
        return [(engine, engine.book, lease)]

    @rule(at=st.integers(0, 1), tenant=TENANTS, block=BLOCKS, ttl=st.integers(1, 60))
    def cache(self, at: int, tenant: str, block: str, ttl: int) -> None:
        """A request leaves a block behind for others."""
        for held in self.given(at, self.owner(tenant), block, 60):
            self.finish_and_keep(held, ttl)

    @rule(target=leases, at=st.integers(0, 1), foreign=st.booleans(), data=st.data())
    def reuse(self, at: int, data: st.DataObject, *, foreign: bool) -> Any:
        engine = self.engines[at]
        block, tenant = self.cached(engine, data, foreign=foreign)
        user, wanted = self.owner(tenant), self._may_reuse(engine, block, tenant, self.clock.ms)
        try:
            lease = self.survive(engine, lambda: engine.book.reuse(user, block))
        except ReuseRefusedError:
            assert not wanted
            return multiple()
        if lease is None:
            return multiple()
        assert wanted
        Lifecycles.seen["leases"] += 1
        Lifecycles.seen["reuses"] += 1
        return (engine, engine.book, lease)

    def cached(self, engine: Engine, data: st.DataObject, *, foreign: bool) -> tuple[str, str]:
        """Draw a block and its tenant or the other one; a request leaves one if none is there."""
        if not engine.memory:
            self.cache(self.engines.index(engine), data.draw(TENANTS), data.draw(BLOCKS), 30)
            self.pass_time(data.draw(st.sampled_from([0, 0, 5, 40])))
        block = data.draw(st.sampled_from([*sorted(engine.memory), "page 0"]))
        owner = engine.memory.get(block)
        is_acme = (owner is None or owner.tenant == "acme") != foreign
        return block, "acme" if is_acme else "globex"

    def _may_reuse(self, engine: Engine, block: str, tenant: str, now_ms: int) -> bool:
        """Same tenant, approved by the last that let go of it in order, and within that time."""
        content = engine.memory.get(block)
        life = [
            one
            for one in engine.events
            if one.block == self.tag(engine, block) and one.kind in ("released", "clear_failed")
        ]
        return (
            content is not None
            and content.tenant == tenant
            and bool(life)
            and life[-1].detail == "kept"
            and now_ms < (life[-1].expires_at_ms or 0)
        )

    @rule(held=leases, ttl=st.integers(1, 60))
    def keep(self, held: Any, ttl: int) -> None:
        self._use(held, lambda lease: lease.keep(ttl * 1_000))

    @rule(held=leases)
    def reject(self, held: Any) -> None:
        self._use(held, lambda lease: lease.reject())

    @rule(held=leases, into=leases, fault=st.none() | st.sampled_from(sorted(LABEL_FAULTS)),
          is_absent=st.booleans())  # fmt: skip
    def transfer(self, held: Any, into: Any, fault: str | None, *, is_absent: bool) -> None:
        sent: dict[str, Any] = {}
        self._use(held, lambda lease: sent.update(lease.transfer()))
        (_, _, source), (engine, book, lease) = held, into
        if not sent or book is not engine.book or lease.ended is not None:
            return
        if fault is not None:
            sent[fault] = LABEL_FAULTS[fault][2]
            if is_absent:
                del sent[fault]
        fits = fault is None and source.owner == lease.owner
        before = sum(engine.gate.mismatches.values())
        try:
            self._use(into, lambda mine: engine.gate.admit(mine, sent), lets=(KvRefusedError,))
        except KvRefusedError:
            assert not fits or self.clock.ms >= sent["expires_at_ms"]
            assert sum(engine.gate.mismatches.values()) == before + 1
            assert lease.ended is not None
            Lifecycles.seen["refused"] += 1
            return
        Lifecycles.seen["admitted"] += fits
        assert fits or engine.book is not book or lease.ended is not None

    @rule(held=consumes(leases))
    def finish(self, held: Any) -> None:
        self._leave(held, None)

    def finish_and_keep(self, held: Any, ttl: int) -> None:
        self._use(held, lambda lease: lease.keep(ttl * 1_000))
        self._leave(held, None)

    @rule(held=consumes(leases), fault=FAULTS)
    def fail(self, held: Any, fault: type[BaseException]) -> None:
        self._leave(held, fault)

    def _use(self, held: Any, act: Any, lets: tuple[type[Exception], ...] = ()) -> None:
        """Use a lease as a request does; what goes wrong meanwhile ends the request."""
        engine, book, lease = held
        if book is not engine.book:
            return  # of a process that is gone
        try:
            self.survive(engine, lambda: act(lease))
        except LeaseEndedError:
            assert lease.ended is not None
        except lets:
            raise

    def _leave(self, held: Any, fault: type[BaseException] | None) -> None:
        engine, book, lease = held
        if book is not engine.book:
            return

        def leave() -> None:
            if fault is None:
                lease.__exit__(None, None, None)
            else:
                lease.__exit__(fault, fault(), None)

        try:
            self.survive(engine, leave)
        except LeaseEndedError:
            assert lease.ended is not None
        assert engine.book is not book or lease.ended is not None

    @rule(seconds=st.integers(0, 45))
    def pass_time(self, seconds: int) -> None:
        self.clock.ms += seconds * 1_000
        self.found += self.ledger.due(self.clock.ms)

    @rule(at=st.integers(0, 1))
    def sweep(self, at: int) -> None:
        self.survive(self.engines[at], self.engines[at].book.sweep)

    @rule(at=st.integers(0, 1), block=BLOCKS)
    def evict(self, at: int, block: str) -> None:
        self.survive(self.engines[at], lambda: self.engines[at].book.drop(block))

    @rule(at=st.integers(0, 1))
    def let_the_next_clearing_fail(self, at: int) -> None:
        self.engines[at].fails_to_clear = True

    @rule(at=st.integers(0, 1), steps=st.integers(1, 4), before=st.booleans())
    def die_soon(self, at: int, steps: int, *, before: bool) -> None:
        self.engines[at].crash_at, self.engines[at].dies_before_the_step = steps, before

    @rule(at=st.integers(0, 1), survives=st.booleans())
    def die_now(self, at: int, *, survives: bool) -> None:
        self.engines[at].restart(memory_survives=survives)

    @rule(kind=st.sampled_from(["transferred", "reused"]), at=st.integers(0, 1), data=st.data(),
          foreign=st.booleans(), absent=st.sampled_from([None, None, None, "tenant", "request_id",
                                                         "created_at_ms"]))  # fmt: skip
    def cheat(
        self, kind: str, at: int, data: st.DataObject, absent: str | None, *, foreign: bool
    ) -> None:
        """A runtime transfers or reuses without asking the book."""
        engine = self.engines[at]
        block, tenant = self.cached(engine, data, foreign=foreign)
        owner = self.owner(tenant)
        given: dict[str, Any] = {
            "tenant": tenant, "request_id": owner.request_id, "created_at_ms": owner.created_at_ms,
        }  # fmt: skip
        if absent is not None and kind == "transferred":
            given[absent] = None
        self.tell(Event(kind=kind, engine=engine.name, kv_pool=POOL, at_ms=self.clock.ms,
                        block=self.tag(engine, block), **given))  # fmt: skip

    @rule(tenant=TENANTS, ends=st.sampled_from(["aborted", "timed_out", "rejected"]))
    def abandon(self, tenant: str, ends: str) -> None:
        """A runtime allocates, ends the request and forgets the block."""
        owner = self.owner(tenant)
        for kind in ("allocated", ends):
            self.tell(Event(kind=kind, engine="prefill", kv_pool=POOL, at_ms=self.clock.ms,
                            tenant=tenant, request_id=owner.request_id,
                            created_at_ms=owner.created_at_ms,
                            block=f"lost by {owner.request_id}"))  # fmt: skip

    @invariant()
    def every_violation_is_found_and_none_invented(self) -> None:
        state = (len(self.events), self.clock.ms)
        if state == self.checked:
            return
        self.checked = state
        wanted = violations(self.events, release_ms=RELEASE_MS, now_ms=self.clock.ms)
        assert {_told(one) for one in self.found} == wanted

    def teardown(self) -> None:
        """End everything: no block is left, and the audit names who used whose."""
        Lifecycles.seen.update(one.breach.value for one in self.found)
        for engine in self.engines:
            engine.fails_to_clear, engine.crash_at = False, None
        self.clock.ms += 1_000_000
        for engine in self.engines:
            engine.book.sweep()
            assert engine.book.open_blocks == 0
            assert not engine.memory, "a block was left with content"
            assert not engine.book.counts["unrecorded"]
        self._check_audit()

    def _check_audit(self) -> None:
        stored: dict[str | None, Event] = {}
        links = set()
        for event in self.events:
            if event.kind == "allocated":
                stored[event.block] = event
            elif event.kind == "released" and event.detail not in ("kept", "shared"):
                stored.pop(event.block, None)
            elif event.kind == "reused" and event.block in stored:
                links.add((stored[event.block].request_id, event.request_id, event.block))
        found = set()
        for tenant in ("acme", "globex"):
            trail = Trail(Subject(tenant=tenant))
            for event in self.events:
                trail.take(decode(EngineEvent, event.line(), Encoding.JSON))
            found |= {
                (link.origin.request_id, link.user.request_id, link.block) for link in trail.links()
            }
        assert found == links


def unknown(kv_pool: str, request_id: str, tenant: str | None) -> int | None:
    """No response tells of an end."""
    del kv_pool, request_id, tenant
    return None


def _told(one: Violation) -> Told:
    block = None if one.breach is Breach.NOT_RELEASED else one.block
    return one.breach, one.holder.request_id, block
