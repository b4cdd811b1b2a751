"""The headers of a message: what it holds and when that happened, for readers without the secret.

They are a convenience and authenticate nothing; a sealed batch proves its index, not its headers.
"""

import re
from typing import Final, NamedTuple

from ingest.broker import Headers
from ingest.limits import MAX_TIME_MS

CONTENT_TYPE: Final = "content-type"
SCHEMA: Final = "bleedwatch-schema"
EVENT_MS: Final = "bleedwatch-event-ms"
TRACE_PARENT: Final = "traceparent"

MAX_HEADER_BYTES: Final = 256
"""Longest header value that is looked at: four times the longest of ours."""

_TIMES: Final = re.compile(rb"(-?\d{1,15}),(-?\d{1,15})")
_TRACE: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


class EventTimes(NamedTuple):
    """Event time of the records in a message, ms: the oldest start and the newest end."""

    oldest: int
    newest: int


def headers(
    content_type: str, schema: str, times: EventTimes, trace_parent: str | None = None
) -> Headers:
    """Return the headers of a message; a trace parent that is none by W3C's form is left out."""
    made = [
        (CONTENT_TYPE, content_type.encode()),
        (SCHEMA, schema.encode()),
        (EVENT_MS, b"%d,%d" % times),
    ]
    if trace_parent is not None and _TRACE.fullmatch(trace_parent):
        made.append((TRACE_PARENT, trace_parent.encode()))
    return tuple(made)


def header(given: Headers, name: str) -> str | None:
    """Return the last header of this name; None when it is absent, too long or not ASCII."""
    for key, value in reversed(given):
        if key == name:
            short = value is not None and len(value) <= MAX_HEADER_BYTES and value.isascii()
            return value.decode() if short else None
    return None


def event_times(given: Headers) -> EventTimes | None:
    """Return the event times that the headers state; None when they state none that can be."""
    stated = header(given, EVENT_MS)
    match = _TIMES.fullmatch(stated.encode()) if stated else None
    if match is None:
        return None
    times = EventTimes(int(match[1]), int(match[2]))
    return times if -MAX_TIME_MS <= times.oldest <= times.newest <= MAX_TIME_MS else None
