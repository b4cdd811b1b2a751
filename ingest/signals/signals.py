"""Turns log lines of engines into events of a fixed vocabulary; most lines are none.

Only the message of a line counts, from its start: text of prompts stands in request logs, and a
line break in a prompt must not begin a message. What goes out is a kind, a fixed word, a request
id and numbers.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final

from ingest.schema_records import EngineEvent, EventKind
from ingest.signals.entries import Entry, Found, entry_of, event_of
from ingest.signals.finished import STARTS, read_aborted
from ingest.signals.lines import (
    HEADER_BYTES,
    JSON_MESSAGE,
    MESSAGE_BYTES,
    LogMessage,
    behind_exception,
    is_request_record,
    message_start,
    read_message,
    time_ms,
    without_colours,
)
from ingest.signals.patterns import HEAD_CHARS, PatternFile

AGAIN_MS: Final = 60_000
"""Two lines that tell the same of the same request within a minute are one event: engines write
an abort where it is asked for and where it is done."""

MAX_RECENT: Final = 4096
"""Requests remembered for that."""

MAX_CONTINUED: Final = 64
"""Messages of several lines remembered at once, one for each process that is writing one."""

_QUOTING: Final = (b"logger.py:", b'request_logger"', b'entrypoints.logger"')
"""Loggers whose messages hold what clients sent."""

_BRACKETS: Final = (b"(", b"[")
"""How the header of most lines begins: with a process or with a date."""

_ACCESS: Final = b"INFO:"
"""How lines of the web server begin: they have no header."""


class Signals:
    """Finds events in log lines by patterns; the first file and pattern that fits wins.

    A line of which no pattern has the first four characters costs well under a microsecond. For
    one thread; lines of one log in order.
    """

    def __init__(self, files: Iterable[PatternFile], *, off: Iterable[str] = ()) -> None:
        left_out = frozenset(off)
        self._heads: dict[bytes, list[Entry]] = {key: [] for key in STARTS}
        for pattern in (one for file in files for one in file.patterns):
            if pattern.name not in left_out:
                entry = entry_of(pattern)
                self._heads.setdefault(entry.start[:HEAD_CHARS], []).append(entry)
        self._literals = {
            key: tuple((one.start, one.contains) for one in entries)
            for key, entries in self._heads.items()
        }
        """What to look for in a message that begins so; nothing for records of a request log."""
        self._starts = {
            key: tuple({one.start: None for one in entries}) or (key,)
            for key, entries in self._heads.items()
        }
        self._recent: OrderedDict[tuple[str, EventKind, str], int] = OrderedDict()
        self._continued: deque[bytes] = deque(maxlen=MAX_CONTINUED)

    def event(
        self, line: bytes, engine: str, kv_pool: str | None, at_ms: int
    ) -> EngineEvent | None:
        """Return the event that a line is, None for most.

        `at_ms` is the time of day, for lines without a time; the pool is the engine unless given.
        """
        first = line[:1]
        start = -1
        if first in _BRACKETS:
            at = line.find(b"] ", 0, HEADER_BYTES)
            if at >= 0:
                start = at + 2
        elif first == b"{":
            at = line.find(JSON_MESSAGE, 0, MESSAGE_BYTES)
            if is_request_record(line):
                start = 0
            elif at >= 0:
                start = at + len(JSON_MESSAGE)
        elif first == b" ":
            return None
        elif line[:5] == _ACCESS:
            start = 0
        if start >= 0 and line[-1:] != b"\r":
            starts = self._starts.get(line[start : start + HEAD_CHARS])
            if starts is None or not line.startswith(starts, start):
                return None
            if not self._may_fit(line, start):
                return None
        found = self._found(line, at_ms)
        if found is None or self._is_again(found, engine):
            return None
        return event_of(found, engine, kv_pool or engine)

    def _may_fit(self, line: bytes, start: int) -> bool:
        """Tell by literals alone whether a message is worth a closer look."""
        literals = self._literals.get(line[start : start + HEAD_CHARS])
        if not literals:
            return literals is not None
        if line.find(b"logger", 0, start) >= 0 and _quotes(line, start):
            return False
        end = start + MESSAGE_BYTES
        for begin, contains in literals:
            if line.find(contains, start, end) >= 0 and line.startswith(begin, start):
                return True
        return False

    def _found(self, line: bytes, now_ms: int) -> Found | None:
        if line[:1] == b"\x1b":
            line = without_colours(line)
        start = message_start(line)
        is_exception = not start and line[:1] != b"{" and line[:HEAD_CHARS] not in self._heads
        if is_exception:
            start = behind_exception(line)
        if line[start : start + HEAD_CHARS] in STARTS:
            return self._finished(line)
        if (start and self._is_continued(line, start)) or not self._may_fit(line, start):
            return None
        message = read_message(line, start)
        if message is None:
            return None
        for entry in self._heads[line[start : start + HEAD_CHARS]]:
            fields = None if is_exception > entry.pattern.exception else entry.fields(message)
            if fields is not None:
                return Found(entry.pattern, fields, time_ms(message.head, now_ms))
        return None

    def _finished(self, line: bytes) -> Found | None:
        """Compare the reason of a request that was aborted; an unknown one is an abort."""
        request = read_aborted(line)
        if request is None:
            return None
        known = {} if request.request_id is None else {"request_id": request.request_id}
        message = LogMessage(b"", "", request.reason[:MESSAGE_BYTES])
        for entry in self._heads.get(message.text[:HEAD_CHARS].encode("utf-8", "replace"), ()):
            fields = entry.fields(message)
            if fields is not None:
                return Found(entry.pattern, {**fields, **known}, request.at_ms)
        return Found(None, known, request.at_ms)

    def _is_continued(self, line: bytes, start: int) -> bool:
        """Tell whether a line goes on with a message of the same process, time and place.

        Engines that break a message into lines end each but the last with a carriage return.
        """
        head = line[:start]
        goes_on = line[-1:] == b"\r"
        if head in self._continued:
            if not goes_on:
                self._continued.remove(head)
            return True
        if goes_on:
            self._continued.append(head)
        return False

    def _is_again(self, found: Found, engine: str) -> bool:
        request_id = found.fields.get("request_id")
        if request_id is None:
            return False
        key = (engine, found.kind, request_id)
        before = self._recent.pop(key, None)
        self._recent[key] = found.at_ms
        if len(self._recent) > MAX_RECENT:
            self._recent.popitem(last=False)
        return before is not None and abs(found.at_ms - before) <= AGAIN_MS


def _quotes(line: bytes, start: int) -> bool:
    return any(line.find(literal, 0, start) >= 0 for literal in _QUOTING)
