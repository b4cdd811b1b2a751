"""Where the message of an engine's log line begins, who wrote it, and when."""

import re
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

from ingest.sources.unshown import Unshown

HEADER_BYTES: Final = 256
"""A message begins within so many bytes of its line: process, level, time, place before."""

MESSAGE_BYTES: Final = 1024
"""How much of a message is looked at: a request id of 512 characters and the words around it."""

JSON_MESSAGE: Final = b'"message": "'
"""What stands before the message in a JSON line; the same without a space is understood too."""

_RECORD: Final = b'{"timestamp"'
_RECORD_EVENT: Final = b'"event": "request.'
_JSON_LINE: Final = re.compile(rb"(?:\([^()]{1,100} pid=\d+\) )?(?=\{\")")
_BRACKETS: Final = (b"[", b"(")
_CLOCK: Final = re.compile(rb"\d\d:\d\d:\d\d ")
_COLOURS: Final = re.compile(rb"\x1b\[[0-9;]*m")
_ERROR: Final = b"Error: "
_DATED: Final = re.compile(
    rb"(?<![\d-])(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{3}))?"
)
_UNDATED: Final = re.compile(rb"(?<![\d-])(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)")


class LogMessage(NamedTuple):
    """The first part of one message. `head` is what stands before it in the line."""

    head: bytes
    place: str
    text: str

    def __repr__(self) -> str:
        """Place and length only: a message may hold text of a prompt."""
        return f"LogMessage({self.place!r}, {len(self.text)} characters)"


class _JsonLine(Unshown):
    message: str
    name: str = ""


def message_start(line: bytes) -> int:
    """Return where the message begins, as cheaply as can be; 0 for a line without a header.

    In a JSON line that is the start of the message's value.
    """
    first = line[:1]
    if first == b"{" and is_request_record(line):
        return 0
    if first == b"{" or (first == b"(" and line.find(b') {"', 0, 128) > 0):
        for key in (JSON_MESSAGE, JSON_MESSAGE.replace(b" ", b"")):
            at = line.find(key, 0, MESSAGE_BYTES)
            if at >= 0:
                return at + len(key)
        return 0
    at = line.find(b"] ", 0, HEADER_BYTES)
    if at < 0 or (first not in _BRACKETS and _CLOCK.search(line, 0, at) is None):
        return 0
    return at + 2


def is_request_record(line: bytes) -> bool:
    """Tell a bare JSON record of SGLang's request log from a JSON log line."""
    return line.startswith(_RECORD) and line.find(_RECORD_EVENT, 0, HEADER_BYTES) > 0


def without_colours(line: bytes) -> bytes:
    """Return a line without terminal colours."""
    return _COLOURS.sub(b"", line)


def read_message(line: bytes, start: int) -> LogMessage | None:
    """Return the message that begins at `start`; None for a JSON line that does not parse."""
    opening = _JSON_LINE.match(line)
    if opening is not None:
        try:
            record = msgspec.json.decode(line[opening.end() :], type=_JsonLine)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return LogMessage(line[:HEADER_BYTES], record.name, record.message[:MESSAGE_BYTES])
    head = line[:start]
    text = line[start : start + MESSAGE_BYTES].rstrip(b"\r\n").decode("utf-8", "replace")
    return LogMessage(head, head[head.rfind(b"[") + 1 :].decode("utf-8", "replace"), text)


def behind_exception(line: bytes) -> int:
    """Return where the text of an error begins that ends a traceback; 0 if it is none."""
    at = line.find(_ERROR, 0, HEADER_BYTES)
    if at < 0 or not line[:at].replace(b".", b"").isalnum():
        return 0
    return at + len(_ERROR)


def time_ms(head: bytes, now_ms: int) -> int:
    """Return when a line was written, `now_ms` if it does not say.

    Without a year it is the one that brings it nearest to `now_ms`; without a zone it is UTC, as
    the readers of requests take it.
    """
    dated = _DATED.search(head, 0, HEADER_BYTES)
    if dated is not None:
        year, *rest = (int(part) for part in dated.groups()[:6])
        at_ms = _moment_ms(year, rest)
        return now_ms if at_ms is None else at_ms + int(dated[7] or 0)
    undated = _UNDATED.search(head, 0, HEADER_BYTES)
    if undated is None:
        return now_ms
    this_year = datetime.fromtimestamp(now_ms / 1000, UTC).year
    parts = [int(part) for part in undated.groups()]
    times = [_moment_ms(year, parts) for year in range(this_year - 1, this_year + 2)]
    return min(
        (one for one in times if one is not None), key=lambda t: abs(t - now_ms), default=now_ms
    )


def _moment_ms(year: int, rest: list[int]) -> int | None:
    month, day, hour, minute, second = rest
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return int(moment.timestamp()) * 1000
