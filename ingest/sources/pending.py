"""Requests that began and have not ended: a table bounded by number, ids held and log time."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

MAX_UNFINISHED = 100_000
"""About 100 requests a second, each running for a quarter of an hour."""

MAX_UNFINISHED_MS = 2 * 60 * 60 * 1000
"""No engine keeps a request for two hours: its end was lost. A live sidecar wants less."""

MAX_UNFINISHED_IDS = 8_000_000
"""Token ids held by all of them: about 300 MB as Python integers."""


class Timed(Protocol):
    """Anything that knows since when, in milliseconds of log time, it has been in its table.

    `first_line` is the number of the first line that tells of it.
    """

    since_ms: int
    first_line: int

    @property
    def held_ids(self) -> int:
        """How many token ids the entry holds now."""
        ...


EntryT = TypeVar("EntryT", bound=Timed)


class PendingTable(Generic[EntryT]):
    """Entries by id, oldest first; `overdue` keeps it within its bounds.

    Whoever adds ids to an entry that lies in the table says so with `grew`.
    """

    def __init__(
        self,
        *,
        max_count: int = MAX_UNFINISHED,
        max_ms: int = MAX_UNFINISHED_MS,
        max_ids: int = MAX_UNFINISHED_IDS,
    ) -> None:
        self._entries: OrderedDict[str, EntryT] = OrderedDict()
        self._max_count = max_count
        self._max_ms = max_ms
        self._max_ids = max_ids
        self._ids = 0

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> EntryT | None:
        """Return the open entry of that id."""
        return self._entries.get(key)

    def put(self, key: str, entry: EntryT) -> None:
        """Add an entry as the youngest. The caller pops an older one of the same id first."""
        self._entries[key] = entry
        self._ids += entry.held_ids

    def grew(self, ids: int) -> None:
        """Account for ids added to an entry of this table."""
        self._ids += ids

    def pop(self, key: str) -> EntryT | None:
        """Remove and return the entry of that id."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._ids = max(0, self._ids - entry.held_ids)
        return entry

    def oldest_line(self) -> int | None:
        """Return the lowest `first_line`, None when the table is empty."""
        return min((entry.first_line for entry in self._entries.values()), default=None)

    def overdue(self, now_ms: int) -> Iterator[EntryT]:
        """Remove and yield what is too old at log time `now_ms` or too much, oldest first."""
        while self._entries:
            key, oldest = next(iter(self._entries.items()))
            fits = len(self._entries) <= self._max_count and self._ids <= self._max_ids
            if fits and now_ms - oldest.since_ms <= self._max_ms:
                return
            self.pop(key)
            yield oldest

    def drain(self) -> Iterator[EntryT]:
        """Remove and yield everything, oldest first: the input has ended."""
        while self._entries:
            yield self._entries.popitem(last=False)[1]
