"""Turns log lines of engines into events of a fixed vocabulary; most lines are none.

Only the message of a line counts, from its start: text of prompts stands in request logs, and a
line break in a prompt must not begin a message. What goes out is a kind, a fixed word, a request
id and numbers.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final

from ingest.schema_records import EngineEvent, EventKind
from ingest.signals.finished import STARTS
from ingest.signals.lines import (
    HEADER_BYTES,
    message_start,
    without_colours,
)
from ingest.signals.patterns import HEAD_CHARS, PatternFile, SignalPattern

AGAIN_MS: Final = 60_000
"""Two lines that tell the same of the same request within a minute are one event: engines write
an abort where it is asked for and where it is done."""

MAX_RECENT: Final = 4096
"""Requests remembered for that."""

MAX_CONTINUED: Final = 64
"""Messages of several lines remembered at once, one for each process that is writing one."""

_QUOTING: Final = ("request_logger", "entrypoints/logger", "entrypoints.logger", "[logger.py")
"""Loggers whose messages hold what clients sent."""


class Signals:
    """Finds events in log lines by patterns; the first file and pattern that fits wins.

    A line of which no pattern has the first four characters costs well under a microsecond. For
    one thread; lines of one log in order.
    """

    def __init__(self, files: Iterable[PatternFile], *, off: Iterable[str] = ()) -> None:
        self._heads: dict[bytes, list[tuple[SignalPattern, bytes, bytes | None]]] = {}
        self._exceptions: dict[bytes, list[tuple[SignalPattern, bytes, bytes | None]]] = {}
        left_out = frozenset(off)
        for pattern in (one for file in files for one in file.patterns):
            if pattern.name in left_out:
                continue
            start = pattern.start.encode()
            contains = None if pattern.contains is None else pattern.contains.encode()
            entry = (pattern, start, contains)
            self._heads.setdefault(start[:HEAD_CHARS], []).append(entry)
            if pattern.exception:
                self._exceptions.setdefault(start[:HEAD_CHARS], []).append(entry)
        for key in STARTS:
            self._heads.setdefault(key, [])
        self._compiled = {
            entry[0].name: entry[0].compiled
            for entries in self._heads.values()
            for entry in entries
        }
        self._recent: OrderedDict[tuple[str, EventKind, str], int] = OrderedDict()
        self._continued: deque[bytes] = deque(maxlen=MAX_CONTINUED)

    def event(
        self, line: bytes, engine: str, kv_pool: str | None = None, at_ms: int = 0
    ) -> EngineEvent | None:
        """Return the event that a line is, None for most.

        `at_ms` is the time of day, for lines without a time; the pool is the engine unless given.
        """
        if line[:1] == b"\x1b":
            line = without_colours(line)
        start = message_start(line)
        if line[-1:] == b"\r":
            return self._first_of_several(line, start, engine, kv_pool, at_ms)
        if line[start : start + HEAD_CHARS] in self._heads:
            return self._looked_at(line, start, engine, kv_pool, at_ms)
        if start <= 1 and b"Error: " in line[:HEADER_BYTES]:
            return self._exception(line, engine, kv_pool, at_ms)
        return None
