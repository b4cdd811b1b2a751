"""Bodies that an engine logs ahead of their requests, and where they stand in the log."""

from collections import OrderedDict
from typing import Final, Generic, NamedTuple, TypeVar

MAX_BODIES: Final = 10_000
"""Kept at most: a body comes just before its request, so this is far more than are waited for."""

BodyT = TypeVar("BodyT")


class Noted(NamedTuple, Generic[BodyT]):
    """One body, the log time of its line in milliseconds, and the number of the line."""

    body: BodyT
    logged_ms: int
    line: int


class Bodies(Generic[BodyT]):
    """The newest bodies by name.

    One that no request has claimed yet is still needed, for `life_ms` of log time; after that its
    request is taken to have been refused, or logged without its body's name.
    """

    def __init__(self, life_ms: int) -> None:
        self._life_ms = life_ms
        self._bodies: OrderedDict[str, Noted[BodyT]] = OrderedDict()
        self._unclaimed: OrderedDict[str, Noted[BodyT]] = OrderedDict()

    def put(self, name: str, body: BodyT, *, line: int, now_ms: int) -> None:
        """Note a body; it takes the place of an earlier one of that name."""
        noted = Noted(body, now_ms, line)
        for table in (self._bodies, self._unclaimed):
            table.pop(name, None)
            table[name] = noted
        if len(self._bodies) > MAX_BODIES:
            oldest, _ = self._bodies.popitem(last=False)
            self._unclaimed.pop(oldest, None)

    def claim(self, name: str) -> Noted[BodyT] | None:
        """Return the body of that name; it stays for others that name it."""
        self._unclaimed.pop(name, None)
        return self._bodies.get(name)

    def pass_time(self, now_ms: int) -> None:
        """Give up waiting for the requests of bodies that are too old at this log time."""
        while self._unclaimed:
            name, oldest = next(iter(self._unclaimed.items()))
            if now_ms - oldest.logged_ms <= self._life_ms:
                return
            del self._unclaimed[name]

    def oldest_line(self) -> int | None:
        """Return the line of the oldest body that no request has claimed yet."""
        return min((noted.line for noted in self._unclaimed.values()), default=None)
