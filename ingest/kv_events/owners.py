"""Who stored which KV block, and where a block is used across the border of a tenant or salt.

A block belongs to whoever stored it first. Engines publish a store; reuse shows when they report
it (vLLM, on request), or when somebody stores on top of a block of another's.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ingest.kv_events.decode import BlockHash, Removed, Stored
from ingest.schema_records import EventKind

MAX_TOLD: Final = 64
"""Foreign tenants of one block that are remembered; what comes behind is told again."""


class Party(NamedTuple):
    """Who stores: the tenant if rules know it, tags of salt and session. Salts may be unknown."""

    tenant: str | None
    salt: str | None
    salt_known: bool
    session: str | None


class Crossing(NamedTuple):
    """A block of `owner` that `party` uses; with every block, whatever happened to one."""

    kind: EventKind
    block: BlockHash
    party: Party | None
    owner: Party | None
    detail: str | None


@dataclass(slots=True)
class _Block:
    owner: Party
    told: set[tuple[str | None, str | None]] = field(default_factory=set)

    def has_told(self, party: Party) -> bool:
        """Tell whether it is known that a party uses this block of another's."""
        return (party.tenant, party.salt) in self.told

    def is_news(self, party: Party) -> bool:
        """Note that it does; return whether that was not known."""
        if self.has_told(party):
            return False
        if len(self.told) < MAX_TOLD:
            self.told.add((party.tenant, party.salt))
        return True


_Key = tuple[int, int, str, BlockHash]


class BlockOwners:
    """Remembers the owners of up to `max_blocks` blocks of one publisher.

    With `every_block` it tells all that happens to blocks, not only crossings.
    """

    def __init__(self, max_blocks: int, *, every_block: bool = False) -> None:
        self._blocks: OrderedDict[_Key, _Block] = OrderedDict()
        self._max_blocks = max_blocks
        self._every_block = every_block
        self.counts: Counter[str] = Counter()
        """Blocks that were `stored`, `again`, `removed` and `forgotten` for want of room."""

    def __len__(self) -> int:
        return len(self._blocks)

    def owner(self, stored: Stored, rank: int, block: BlockHash) -> Party | None:
        """Return the owner of a block of the same rank, group and medium; None if unknown."""
        found = self._blocks.get((rank, stored.group, stored.medium, block))
        return None if found is None else found.owner

    def store(self, stored: Stored, rank: int, party: Party) -> list[Crossing]:
        """Note blocks of a party; return the crossings, once for a chain of blocks and a party."""
        parent = None
        if stored.parent is not None:
            parent = self._blocks.get((rank, stored.group, stored.medium, stored.parent))
        goes_on = parent is not None and parent.has_told(party)
        told = [] if parent is None else list(_on_parent(stored.parent, parent, party))
        for block in stored.blocks:
            key = (rank, stored.group, stored.medium, block)
            known = self._blocks.get(key)
            if known is None:
                self.counts["stored"] += 1
                self._blocks[key] = _Block(party)
                if self._every_block:
                    told.append(Crossing(EventKind.ALLOCATED, block, party, None, None))
                continue
            self.counts["again"] += 1
            self._blocks.move_to_end(key)
            detail = _difference(known.owner, party)
            if detail is not None and known.is_news(party) and not goes_on:
                told.append(Crossing(EventKind.REUSED, block, party, known.owner, detail))
            elif self._every_block:
                told.append(Crossing(EventKind.REUSED, block, party, known.owner, None))
        self._forget()
        return told if self._every_block else _first_of_each(told)

    def remove(self, removed: Removed, rank: int) -> list[Crossing]:
        """Forget blocks that the engine has dropped."""
        told: list[Crossing] = []
        for block in removed.blocks:
            known = self._blocks.pop((rank, removed.group, removed.medium, block), None)
            self.counts["removed"] += 1
            if self._every_block:
                owner = None if known is None else known.owner
                told.append(Crossing(EventKind.RELEASED, block, None, owner, None))
        return told

    def clear(self) -> None:
        """Forget all: the engine has dropped them, or events are missing."""
        self._blocks.clear()

    def _forget(self) -> None:
        while len(self._blocks) > self._max_blocks:
            self._blocks.popitem(last=False)
            self.counts["forgotten"] += 1


def _on_parent(parent: BlockHash | None, known: _Block, party: Party) -> Iterator[Crossing]:
    """Look at the block behind which blocks are stored."""
    detail = _difference(known.owner, party)
    if parent is None or detail is None or not known.is_news(party):
        return
    kind = EventKind.ALLOCATED if detail == "salt_differs" else EventKind.REUSED
    yield Crossing(kind, parent, party, known.owner, f"parent_{detail}")


def _difference(owner: Party, party: Party) -> str | None:
    """Say how two parties must not share a block; what is unknown is no difference."""
    if owner.salt_known and party.salt_known and owner.salt != party.salt:
        return "salt_differs"
    if None not in (owner.tenant, party.tenant) and owner.tenant != party.tenant:
        return "tenant_differs"
    return None


def _first_of_each(told: Iterable[Crossing]) -> list[Crossing]:
    """Of one store, keep the first crossing between each two parties."""
    first: dict[tuple[Party | None, Party | None], Crossing] = {}
    for one in told:
        first.setdefault((one.party, one.owner), one)
    return list(first.values())
