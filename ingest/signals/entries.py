"""One pattern against one message, and the event that comes of it."""

import re
from typing import NamedTuple

from ingest.names import is_name
from ingest.schema_records import EngineEvent, EventKind
from ingest.signals.lines import LogMessage
from ingest.signals.patterns import SignalPattern


class Entry(NamedTuple):
    """A pattern, ready to be compared."""

    pattern: SignalPattern
    start: bytes
    contains: bytes
    compiled: re.Pattern[str] | None

    def fields(self, message: LogMessage) -> dict[str, str] | None:
        """Return what the pattern takes out of a message, None if it does not fit."""
        pattern, text = self.pattern, message.text
        if not text.startswith(pattern.start) or (pattern.contains or "") not in text:
            return None
        if pattern.place is not None and message.place and pattern.place not in message.place:
            return None
        if self.compiled is None:
            return {}
        found = self.compiled.match(text)
        if found is None:
            return None
        return {name: value for name, value in found.groupdict().items() if value is not None}


class Found(NamedTuple):
    """What a line was found to be; no pattern stands for an abort without a known reason."""

    pattern: SignalPattern | None
    fields: dict[str, str]
    at_ms: int

    @property
    def kind(self) -> EventKind:
        """What happened."""
        return EventKind.ABORTED if self.pattern is None else self.pattern.kind


def entry_of(pattern: SignalPattern) -> Entry:
    """Make a pattern ready."""
    contains = b"" if pattern.contains is None else pattern.contains.encode()
    return Entry(pattern, pattern.start.encode(), contains, pattern.compiled)


def event_of(found: Found, engine: str, kv_pool: str) -> EngineEvent:
    """Make the record; an id that no record may hold is left out."""
    prompt_tokens, limit_tokens = (
        None if (text := found.fields.get(name)) is None else int(text)
        for name in ("prompt_tokens", "limit_tokens")
    )
    request_id = found.fields.get("request_id")
    return EngineEvent(
        kind=found.kind,
        engine=engine,
        kv_pool=kv_pool,
        at_ms=found.at_ms,
        request_id=request_id if request_id is not None and is_name(request_id) else None,
        prompt_tokens=prompt_tokens,
        limit_tokens=limit_tokens,
        detail=None if found.pattern is None else found.pattern.detail,
    )
