"""Requests that need not be sent again when a log is read again from a place before their end."""

from collections import deque
from typing import Final, NamedTuple

from ingest.sources.base import RawRequest
from ingest.tail.checkpoint import HadRequest

MAX_HAD: Final = 100_000
"""Remembered at most. One that is forgotten is sent again, under the id that it had."""


class _Had(NamedTuple):
    request_id: str
    first_line: int
    last_line: int


class HadRequests:
    """What a log has given already. `before` comes from the checkpoint that reading began at.

    A request that began below the checkpoint and ended above it would be read again without its
    beginning: with half of its ids, or without what tells its tenant. It is told by its id, and by
    its first line, which is not above the last line that the request had.
    """

    def __init__(self, before: tuple[HadRequest, ...] = (), *, position: int = 0) -> None:
        self._had = deque(
            (_Had(one.request_id, position - 1, one.last_line) for one in before), maxlen=MAX_HAD
        )
        self._again = {one.request_id: one.last_line for one in before}

    def is_again(self, request: RawRequest) -> bool:
        """Tell whether a request is the rest of one that was sent before the start."""
        last_line = self._again.get(request.request_id)
        return last_line is not None and request.first_line <= last_line

    def add(self, request: RawRequest) -> None:
        """Note a request that is sent."""
        if request.first_line < request.last_line:
            self._had.append(_Had(request.request_id, request.first_line, request.last_line))

    def across(self, position: int) -> tuple[HadRequest, ...]:
        """Return those that began below a position and have a line at it or above."""
        return tuple(
            HadRequest(one.request_id, one.last_line)
            for one in self._had
            if one.first_line < position <= one.last_line
        )

    def release(self, position: int) -> None:
        """Forget what lies wholly below a position that is not gone back behind any more."""
        # in the order of their ends but for a few, which go a little later
        while self._had and self._had[0].last_line < position:
            self._had.popleft()
        if self._again and max(self._again.values()) < position:
            self._again.clear()
