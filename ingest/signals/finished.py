"""Requests that SGLang's request log says were aborted: who, when, and the engine's reason."""

from typing import Final, NamedTuple

from detector.errors import RecordError
from ingest.sources.sglang_lines import PREFIX_BYTES, read_record

STARTS: Final = (b'{"ti', b"Fini")
"""How records of the request log begin, as JSON and as text, cut to what tells messages apart."""

_JSON_START: Final = b'{"timestamp"'
_JSON_RECEIVED: Final = b'"event": "request.received'
_JSON_ABORT: Final = b'{"type": "abort"'
_TEXT_ABORT: Final = b"{'type': 'abort'"


class AbortedRequest(NamedTuple):
    """A finished request whose finish reason is of type `abort`."""

    request_id: str | None
    at_ms: int
    reason: str


def read_aborted(line: bytes) -> AbortedRequest | None:
    """Return the aborted request that a line of the request log tells of, None for another line.

    A line that holds such a reason is taken apart; prompts and answers in it are never compared.
    """
    is_json = _JSON_START in line[:PREFIX_BYTES]
    if is_json and _JSON_RECEIVED in line[:PREFIX_BYTES]:
        return None
    if (_JSON_ABORT if is_json else _TEXT_ABORT) not in line:
        return None
    try:
        record = read_record(line)
    except RecordError:
        return None
    if record is None or record.event != "finished" or record.answer is None:
        return None
    meta = record.answer.meta_info
    reason = meta.get("finish_reason") if isinstance(meta, dict) else None
    if not isinstance(reason, dict) or reason.get("type") != "abort":
        return None
    rid, message = record.fields.rid, reason.get("message")
    return AbortedRequest(
        rid if isinstance(rid, str) else None,
        record.start_ms,
        message if isinstance(message, str) else "",
    )
