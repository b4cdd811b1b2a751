"""Takes a vLLM log line apart: time, place and message, from text or JSON, whatever the prefix."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from detector.errors import RecordError
from ingest.sources.unshown import Unshown
from ingest.sources.vllm_year import FirstYear

FALLBACK_YEAR = 1972
"""Text lines carry no year. Without one they get a leap year long past: distances hold."""

_HALF_YEAR = timedelta(days=183)
_LEVELS = rb"(?:TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL)"
_COLOURS = re.compile(rb"\x1b\[[0-9;]*m")
_HEADER = re.compile(
    rb"([^\n]{0,256}?)(?<![A-Za-z])" + _LEVELS + rb" +"
    rb"(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d) \[([^\]\n]{1,200}?)(?::\d+)?\] ?"
)
_JSON_START = re.compile(rb"(?:\([^()]{1,100} pid=\d+\) )?(?=\{\")")
_SEPARATORS = re.compile(r"[-:T ,.]")


@dataclass(slots=True, kw_only=True)
class LogLine:
    """One line. `[start_ms, end_ms]` is when it was written: one second wide in text logs.

    `place` is the source file or logger name ("" if unknown); `head` the exact prefix, which
    continuation lines of one message repeat; `continues` says that such a line follows. Whoever
    numbers lines says where a message begins and ends with `first_line` and `last_line`.
    """

    start_ms: int
    end_ms: int
    place: str
    message: str = field(repr=False)
    head: bytes = field(default=b"", repr=False)
    continues: bool = False
    first_line: int = 0
    last_line: int = 0


class _JsonLine(Unshown):
    message: str
    asctime: str = ""
    timestamp: str = ""
    name: str = ""


class Opening(NamedTuple):
    """How a line of a record opens: what stands before its level, and its exact prefix.

    Both are empty for a JSON record. `continues` says that the line ends with CR.
    """

    writer: bytes
    prefix: bytes
    continues: bool


class LineReader:
    """Reads lines of one log in order; remembers the year.

    `year` is the year of the first text line, or tells it by that line's day. It moves on when the
    date falls back by more than half a year (December to January). Times have no zone and are taken
    as UTC.
    """

    def __init__(self, year: int | FirstYear | None) -> None:
        self._first_year = year if callable(year) else None
        self._year = FALLBACK_YEAR if year is None or callable(year) else year
        self._latest: datetime | None = None
        self._json = msgspec.json.Decoder(_JsonLine)

    def read(self, raw: bytes) -> LogLine | None:
        """Return the line, None if it is no vLLM record. Raises RecordError for a broken one."""
        line = _COLOURS.sub(b"", raw) if b"\x1b" in raw else raw
        start = _JSON_START.match(line)
        if start is not None:
            return self._from_json(line[start.end() :])
        header = _HEADER.match(line)
        if header is None:
            return None
        start_ms = self._time_ms(header)
        body = line[header.end() :]
        continues = body.endswith(b"\r")
        return LogLine(
            start_ms=start_ms,
            end_ms=start_ms + 999,
            place=header[7].decode("utf-8", "replace"),
            message=(body[:-1] if continues else body).decode("utf-8", "replace"),
            head=header[0].rstrip(b" "),
            continues=continues,
        )

    def _from_json(self, line: bytes) -> LogLine:
        try:
            record = self._json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RecordError("json_unreadable", "a JSON log line does not parse") from error
        moment = _json_time(record.asctime or record.timestamp)
        return LogLine(
            start_ms=_to_ms(moment),
            end_ms=_to_ms(moment),
            place=record.name,
            message=record.message,
        )

    def _time_ms(self, header: re.Match[bytes]) -> int:
        date = [int(header[part]) for part in range(2, 7)]
        if self._first_year is not None and self._latest is None:
            self._year = self._first_year(date[0], date[1])
        moment = _moment(self._year, date)
        if self._latest is not None:
            if self._latest - moment > _HALF_YEAR:
                self._year += 1
                moment = _moment(self._year, date)
            elif moment - self._latest > _HALF_YEAR:
                return _to_ms(_moment(self._year - 1, date))
        self._latest = max(moment, self._latest or moment)
        return _to_ms(moment)


def opening_of(raw: bytes) -> Opening | None:
    """Return how a line of a record opens, None of any other line.

    None as well of a JSON record with CR: it is one line, so that CR is no mark and tells nothing.
    """
    line = _COLOURS.sub(b"", raw) if b"\x1b" in raw else raw
    continues = line.endswith(b"\r")
    if _JSON_START.match(line):
        return None if continues else Opening(b"", b"", continues)
    header = _HEADER.match(line)
    if header is None:
        return None
    return Opening(header[1], header[0].rstrip(b" "), continues)


def _json_time(stamp: str) -> datetime:
    parts = _SEPARATORS.split(stamp.strip(), maxsplit=6)
    try:
        year, *rest = (int(part) for part in parts[:6])
        fraction = int((parts[6][:3] if len(parts) > 6 else "0").ljust(3, "0"))
    except ValueError as error:
        raise RecordError("time_unreadable", "a JSON log line has no readable time") from error
    return _moment(year, rest) + timedelta(milliseconds=fraction)


def _moment(year: int, rest: Sequence[int]) -> datetime:
    """Build a time from the year and (month, day, hour, minute, second)."""
    try:
        month, day, hour, minute, second = rest
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise RecordError("time_unreadable", "a log line has no such date") from error


def _to_ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000 + 0.5)
