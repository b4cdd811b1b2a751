"""Which request used whose KV memory: the links between requests, from the events of a time."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from detector.ledger.pool import KEPT, SHARED
from detector.ledger.violation import Holder
from detector.runtime.records import Event

MAX_BLOCKS: Final = 200_000
"""Blocks whose content is known at a time, about 400 bytes each; the oldest goes first."""

MAX_LINKS: Final = 500_000
"""Reuses kept, about 400 bytes each; the oldest go first."""

MAX_STEPS: Final = 100_000
"""Events kept of what is asked for; the oldest go first."""


class Link(NamedTuple):
    """A request used a block that holds what another had stored."""

    at_ms: int
    kv_pool: str
    engine: str
    block: str
    origin: Holder
    user: Holder

    @property
    def is_foreign(self) -> bool:
        """True if it is known that two tenants are on both sides."""
        tenants = (self.origin.tenant, self.user.tenant)
        return None not in tenants and tenants[0] != tenants[1]


class Subject(NamedTuple):
    """What is asked for: one of the three; of a block the first characters of its tag do."""

    request_id: str | None = None
    block: str | None = None
    tenant: str | None = None

    def is_in(self, event: Event) -> bool:
        """Tell whether an event is about it."""
        if self.request_id is not None:
            return event.request_id == self.request_id
        if self.block is not None:
            return event.block is not None and event.block.startswith(self.block)
        return self.tenant in (event.tenant, event.other_tenant)

    def is_of(self, link: Link) -> bool:
        """Tell whether a reuse is about it."""
        if self.request_id is not None:
            return self.request_id in (link.origin.request_id, link.user.request_id)
        if self.block is not None:
            return link.block.startswith(self.block)
        return self.tenant in (link.origin.tenant, link.user.tenant)


class Trail:
    """Takes events in the order of time; answers once all are in.

    `forgotten` counts what there was no room for: an answer may then lack links.
    """

    def __init__(self, subject: Subject) -> None:
        self.forgotten = 0
        self.events = 0
        self.first_ms: int | None = None
        self.last_ms: int | None = None
        self.steps: deque[Event] = deque(maxlen=MAX_STEPS)
        """The events about what is asked for."""
        self._subject = subject
        self._origins: OrderedDict[tuple[str, str], Holder] = OrderedDict()
        self._links: deque[Link] = deque(maxlen=MAX_LINKS)

    def take(self, event: Event) -> None:
        """Take an event."""
        self.events += 1
        self.first_ms = min(event.at_ms, self.first_ms or event.at_ms)
        self.last_ms = max(event.at_ms, self.last_ms or event.at_ms)
        if self._subject.is_in(event):
            self.forgotten += len(self.steps) == MAX_STEPS
            self.steps.append(event)
        if event.block is None:
            return
        place = (event.kv_pool, event.block)
        if event.kind == "reused" or (event.kind == "allocated" and event.other_tenant is not None):
            self._link(event, event.block)
        elif event.kind == "allocated":
            self._origins[place] = _holder(event)
            self._origins.move_to_end(place)
            if len(self._origins) > MAX_BLOCKS:
                self._origins.popitem(last=False)
                self.forgotten += 1
        elif event.kind == "released" and event.detail not in (KEPT, SHARED):
            self._origins.pop(place, None)

    def links(self) -> list[Link]:
        """Return the reuses that lead to or from what is asked for, in the order of time.

        Content flows from link to link: what a request has stored after it used a block of another
        may hold that one's content too.
        """
        asked = [link for link in self._links if self._subject.is_of(link)]
        back = _reached(asked, self._links, begin=_user, end=_origin, backwards=True)
        ahead = _reached(asked, self._links, begin=_origin, end=_user, backwards=False)
        found = dict.fromkeys([*asked, *back, *ahead])
        return sorted(found, key=lambda link: link.at_ms)

    def _link(self, event: Event, block: str) -> None:
        origin = self._origins.get((event.kv_pool, block))
        if event.other_tenant is not None and (
            origin is None or origin.tenant != event.other_tenant
        ):
            origin = Holder(event.other_tenant, None, None)
        if origin is not None:
            self.forgotten += len(self._links) == MAX_LINKS
            self._links.append(
                Link(event.at_ms, event.kv_pool, event.engine, block, origin, _holder(event))
            )


def _holder(event: Event) -> Holder:
    return Holder(event.tenant, event.request_id, event.created_at_ms)


def _origin(link: Link) -> tuple[str, Holder]:
    return link.kv_pool, link.origin


def _user(link: Link) -> tuple[str, Holder]:
    return link.kv_pool, link.user


_End = Callable[[Link], tuple[str, Holder]]


def _reached(
    asked: Iterable[Link], links: Iterable[Link], *, begin: _End, end: _End, backwards: bool
) -> list[Link]:
    """Return the links that are reached from some, none of which goes against time.

    `begin` is the end of a link at which it is entered, `end` that at which it is left.
    """
    entered: dict[tuple[str, Holder], list[Link]] = {}
    for link in links:
        if link.user.request_id is not None and link.origin.request_id is not None:
            entered.setdefault(begin(link), []).append(link)
    reached: dict[Link, None] = {}
    waiting = deque(asked)
    while waiting:
        link = waiting.popleft()
        for other in entered.get(end(link), ()):
            in_time = other.at_ms <= link.at_ms if backwards else other.at_ms >= link.at_ms
            if in_time and other not in reached:
                reached[other] = None
                waiting.append(other)
    return list(reached)
