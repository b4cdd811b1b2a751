"""Turns log lines of engines into events of a fixed vocabulary; most lines are none.

Only the message of a line counts, from its start: text of prompts stands in request logs, and a
line break in a prompt must not begin a message. What goes out is a kind, a fixed word, a request
id and numbers.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from ingest.limits import MAX_TEXT_CHARS
from ingest.schema_records import EngineEvent, EventKind
from ingest.signals.finished import STARTS, read_aborted
from ingest.signals.lines import (
    HEADER_BYTES,
    JSON_MESSAGE,
    MESSAGE_BYTES,
    LogMessage,
    behind_exception,
    message_start,
    read_message,
    time_ms,
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
        self._heads: dict[bytes, list[_Entry]] = {key: [] for key in STARTS}
        for pattern in (one for file in files for one in file.patterns):
            if pattern.name not in left_out:
                entry = _entry(pattern)
                self._heads.setdefault(entry.start[:HEAD_CHARS], []).append(entry)
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
        if first in _BRACKETS:
            start = line.find(b"] ", 0, HEADER_BYTES) + 2
        elif first == b"{":
            start = line.find(JSON_MESSAGE, 0, MESSAGE_BYTES) + len(JSON_MESSAGE)
        elif first == b" ":
            return None
        else:
            start = 0
        if start > len(JSON_MESSAGE) or (start > 1 and first != b"{") or line[:5] == _ACCESS:
            starts = self._starts.get(line[start : start + HEAD_CHARS])
            if (starts is None or not line.startswith(starts, start)) and line[-1:] != b"\r":
                return None
        return self._slowly(line, engine, kv_pool, at_ms)

    def _slowly(
        self, line: bytes, engine: str, kv_pool: str | None, at_ms: int
    ) -> EngineEvent | None:
        """Do the same for a line that may be one, or has another form."""
        if line[:1] == b"\x1b":
            line = without_colours(line)
        start = message_start(line)
        is_exception = not start and line[:1] != b"{" and line[:HEAD_CHARS] not in self._heads
        if is_exception:
            start = behind_exception(line)
        key = line[start : start + HEAD_CHARS]
        if key not in self._heads or not line.startswith(self._starts[key], start):
            if start:
                self._is_continued(line, start)
            return None
        if key in STARTS:
            found = self._finished(line)
        else:
            found = self._found(line, start, at_ms, is_exception=is_exception)
        if found is None or self._is_again(found, engine):
            return None
        return _event(found, engine, kv_pool or engine)

    def _found(
        self, line: bytes, start: int, now_ms: int, *, is_exception: bool
    ) -> "_Found | None":
        if self._is_continued(line, start) or _quotes(line, start):
            return None
        raw = line[start : start + MESSAGE_BYTES]
        entries = [
            one
            for one in self._heads[raw[:HEAD_CHARS]]
            if one.may_fit(raw, is_exception=is_exception)
        ]
        message = read_message(line, start) if entries else None
        if message is None:
            return None
        for entry in entries:
            fields = entry.fields(message)
            if fields is not None:
                return _Found(entry.pattern, fields, time_ms(message.head, now_ms))
        return None

    def _finished(self, line: bytes) -> "_Found | None":
        """Compare the reason of a request that was aborted; an unknown one is an abort."""
        request = read_aborted(line)
        if request is None:
            return None
        known = {} if request.request_id is None else {"request_id": request.request_id}
        message = LogMessage(b"", "", request.reason[:MESSAGE_BYTES])
        raw = message.text.encode("utf-8", "replace")
        for entry in self._heads.get(raw[:HEAD_CHARS], ()):
            if entry.may_fit(raw, is_exception=False):
                fields = entry.fields(message)
                if fields is not None:
                    return _Found(entry.pattern, {**fields, **known}, request.at_ms)
        return _Found(None, known, request.at_ms)

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

    def _is_again(self, found: "_Found", engine: str) -> bool:
        request_id = found.fields.get("request_id")
        if request_id is None:
            return False
        key = (engine, found.kind, request_id)
        before = self._recent.pop(key, None)
        self._recent[key] = found.at_ms
        if len(self._recent) > MAX_RECENT:
            self._recent.popitem(last=False)
        return before is not None and abs(found.at_ms - before) <= AGAIN_MS


class _Entry(NamedTuple):
    """A pattern, ready to be compared."""

    pattern: SignalPattern
    start: bytes
    contains: bytes
    compiled: re.Pattern[str] | None

    def may_fit(self, raw: bytes, *, is_exception: bool) -> bool:
        """Tell by literals alone whether the regular expression is worth a try."""
        return (
            raw.startswith(self.start)
            and self.contains in raw
            and (self.pattern.exception or not is_exception)
        )

    def fields(self, message: LogMessage) -> dict[str, str] | None:
        """Return what the pattern takes out of a message, None if it does not fit."""
        if (
            self.pattern.place is not None
            and message.place
            and self.pattern.place not in message.place
        ):
            return None
        if self.compiled is None:
            return {}
        found = self.compiled.match(message.text)
        if found is None:
            return None
        return {name: value for name, value in found.groupdict().items() if value is not None}


class _Found(NamedTuple):
    """What a line was found to be; no pattern stands for an abort without a known reason."""

    pattern: SignalPattern | None
    fields: dict[str, str]
    at_ms: int

    @property
    def kind(self) -> EventKind:
        return EventKind.ABORTED if self.pattern is None else self.pattern.kind


def _entry(pattern: SignalPattern) -> _Entry:
    contains = b"" if pattern.contains is None else pattern.contains.encode()
    return _Entry(pattern, pattern.start.encode(), contains, pattern.compiled)


def _event(found: _Found, engine: str, kv_pool: str) -> EngineEvent:
    request_id = found.fields.get("request_id")
    if request_id is not None and not _is_name(request_id):
        request_id = None
    prompt_tokens, limit_tokens = (
        None if (text := found.fields.get(name)) is None else int(text)
        for name in ("prompt_tokens", "limit_tokens")
    )
    return EngineEvent(
        kind=found.kind,
        engine=engine,
        kv_pool=kv_pool,
        at_ms=found.at_ms,
        request_id=request_id,
        prompt_tokens=prompt_tokens,
        limit_tokens=limit_tokens,
        detail=None if found.pattern is None else found.pattern.detail,
    )


def _is_name(text: str) -> bool:
    return 0 < len(text) <= MAX_TEXT_CHARS and text.isprintable()


def _quotes(line: bytes, start: int) -> bool:
    return any(line.find(one, 0, start) >= 0 for one in _QUOTING)
