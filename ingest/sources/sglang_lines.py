"""Takes an SGLang request-log line apart: one record from JSON or from the text format."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, TypeVar

import msgspec

from detector.errors import RecordError
from ingest.sources.literals import LiteralError, keywords
from ingest.sources.unshown import Unshown

PREFIX_BYTES = 256
"""The record starts within the first bytes; a container runtime may put its own prefix there."""

_JSON_START = b'{"timestamp"'
_TEXT_START = re.compile(rb"(?:Receive|Finish|Receive OpenAI): obj=")
_DATE = re.compile(r"\[(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)[^\]]*\] ")

_LEFT = re.compile(
    rb"\[\d{4}-[^\]]{1,64}\] (?:\[http_server\] Error: )?"
    rb"Request is disconnected from the client side \(type \d\)\. "
    rb"Abort request obj\.rid='([^']{1,512})'"
)
"""What the engine says of a request whose client has gone away; its answer is never logged."""

StructT = TypeVar("StructT", bound=msgspec.Struct)
Event = Literal["received", "finished", "openai"]
_EVENTS: dict[str, Event] = {
    "request.received": "received",
    "request.finished": "finished",
    "request.received.openai": "openai",
    "Receive": "received",
    "Finish": "finished",
    "Receive OpenAI": "openai",
}


class RequestFields(Unshown):
    """The part of a request object that matters, still of any type: the engine's, not ours.

    UNSET means that the level leaves the field out.
    """

    rid: Any = None
    session_id: Any = None
    conversation_id: Any = None
    extra_key: Any = None
    cache_salt: Any = None
    routing_key: Any = None
    custom_labels: Any = None
    user: Any = None
    model: Any = None
    text: Any = msgspec.UNSET
    input_ids: Any = msgspec.UNSET
    sampling_params: Any = None


class AnswerFields(Unshown):
    """The part of an answer that matters, still of any type."""

    text: Any = msgspec.UNSET
    output_ids: Any = msgspec.UNSET
    prompt_token_ids: Any = None
    meta_info: Any = None
    embedding: Any = msgspec.UNSET


class _JsonLine(Unshown):
    timestamp: str
    event: str
    obj: RequestFields = msgspec.field(default_factory=RequestFields)
    rid: Any = None
    headers: Any = None
    out: AnswerFields | None = None


@dataclass(slots=True, kw_only=True)
class Record:
    """One line. `[start_ms, end_ms]` is when it was written, local time taken as UTC."""

    event: Event
    start_ms: int
    end_ms: int
    fields: RequestFields = field(repr=False)
    headers: Mapping[str, Any] = field(repr=False)
    answer: AnswerFields | None = field(repr=False)


_decoder = msgspec.json.Decoder(_JsonLine)


def read_record(raw: bytes) -> Record | None:
    """Read one line, None if it is no request record. Raises RecordError if it is a broken one."""
    at = raw.find(_JSON_START, 0, PREFIX_BYTES)
    if at >= 0:
        return _from_json(raw[at:] if at else raw)
    start = _TEXT_START.search(raw, 0, PREFIX_BYTES)
    if start is None:
        return None
    return _from_text(
        raw[: start.start()].decode("utf-8", "replace"),
        raw[start.start() :].decode("utf-8", "replace"),
    )


def left_request(raw: bytes) -> str | None:
    """Return the id of the request whose client the line says has gone away, None for others."""
    found = _LEFT.match(raw)
    return None if found is None else found[1].decode("utf-8", "replace")


def _from_json(line: bytes) -> Record | None:
    try:
        record = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordError("json_unreadable", "a JSON log line does not parse") from error
    event = _EVENTS.get(record.event)
    if event is None:
        return None
    moment_ms = _time_ms(record.timestamp)
    if record.obj.rid is None:
        record.obj.rid = record.rid
    return Record(
        event=event,
        start_ms=moment_ms,
        end_ms=moment_ms,
        fields=record.obj,
        headers=record.headers if isinstance(record.headers, dict) else {},
        answer=record.out,
    )


def _from_text(prefix: str, text: str) -> Record:
    word, _, rest = text.partition(": ")
    dated = _DATE.search(prefix)
    if dated is None:
        raise RecordError("time_unreadable", "a text log line has no date")
    try:
        values, end = keywords(rest, 0)
    except (LiteralError, RecursionError) as error:
        raise RecordError("text_unreadable", "a text log line does not parse") from error
    if end < len(rest.rstrip()):
        raise RecordError("text_unreadable", "a text log line does not parse to its end")
    obj, out, headers = values.get("obj"), values.get("out"), values.get("headers")
    if not isinstance(obj, dict):
        raise RecordError("text_unreadable", "a text log line holds no request object")
    moment_ms = _time_ms(dated[1])
    return Record(
        event=_EVENTS[word],
        start_ms=moment_ms,
        end_ms=moment_ms + 999,
        fields=_known(RequestFields, obj),
        headers=headers if isinstance(headers, dict) else {},
        answer=_known(AnswerFields, out) if isinstance(out, dict) else None,
    )


def _known(kind: type[StructT], values: dict[str, Any]) -> StructT:
    names = kind.__struct_fields__
    return kind(**{name: values[name] for name in names if name in values})


def _time_ms(stamp: str) -> int:
    try:
        moment = datetime.fromisoformat(stamp)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise RecordError("time_unreadable", "a log line has no readable time") from error
