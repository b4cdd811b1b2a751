"""What the topics of results hold, as the store takes it: checked, and never an end of reading.

A worker writes both topics, but whoever may write them can send anything. What the store could not
keep, or would not want to, is refused here with a reason, and counted: a record that can never be
written would be tried again for ever, and nothing behind it recorded.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from detector.errors import RecordError
from detector.finding import DIGEST_BYTES, MOST_DIGESTS, Digests, Finding
from detector.heartbeat import RULE, is_reserved, sent_ms
from exporters.store.heartbeats import Heartbeat
from exporters.store.request_rows import StoredRequest
from ingest.broker import BrokerRecord
from ingest.limits import MAX_COUNT, MAX_TEXT_CHARS, MAX_TIME_MS
from ingest.opening import open_records
from ingest.record_headers import SCHEMA, header
from ingest.schema import check_version
from ingest.schema_records import RequestRow

FINDING: Final = "finding"
"""Name of the schema of findings."""

MAX_SENTENCE_CHARS: Final = 8 * MAX_TEXT_CHARS
"""Longest explanation: a sentence that names two tenants and two requests."""

MAX_FINDING_BYTES: Final = 2**20
"""Largest finding: runs and equally good sources are few; more is no finding of ours."""

MAX_INDEXED_BYTES: Final = 2_400
"""Most bytes of UTF-8 that the names have together which stand in one row of an index. PostgreSQL
refuses a row above 2,704 bytes, with its header, times and padding (ProgramLimitExceeded). Both
databases keep it, so that a store can be moved from one to the other."""

REASONS: Final = frozenset(
    {"empty", "undecodable", "wrong_type", "schema_version", "too_large", "out_of_bounds"}
)
"""Why a finding is refused; a row of a request also for what `ingest.dead_letter` lists."""

_DECODER: Final = msgspec.json.Decoder(Finding)
_ID: Final = re.compile(r"[0-9a-zA-Z._-]{1,128}")
_KEY: Final = re.compile(r"[0-9a-f]{1,64}")
_RULE: Final = re.compile(r"BW\d{3}")


class Rows(NamedTuple):
    """The rows of one message, and why others are not among them."""

    rows: tuple[StoredRequest, ...]
    refused: tuple[str, ...]


def read_finding(message: BrokerRecord) -> Finding:
    """Return the finding of a message. Raises RecordError with one of REASONS."""
    if not message.value:
        raise RecordError("empty", "the message has no value")
    if len(message.value) > MAX_FINDING_BYTES:
        raise RecordError("too_large", "the message is larger than a finding can be")
    check_version(header(message.headers, SCHEMA) or "", FINDING)
    try:
        finding = _DECODER.decode(message.value)
    except msgspec.ValidationError:
        raise RecordError("wrong_type", "a field has a wrong type or is missing") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise RecordError("undecodable", "the message is not JSON") from None
    if not _fits(finding):
        raise RecordError("out_of_bounds", "a field of the finding breaks its bounds")
    return finding


def heartbeat_of(finding: Finding) -> Heartbeat | None:
    """Return the heartbeat that a finding is; None if it is about somebody."""
    made_ms = sent_ms(finding.sink.request_id)
    if finding.rule != RULE or made_ms is None:
        return None
    return Heartbeat(finding.engine, made_ms)


def read_rows(message: BrokerRecord) -> Rows:
    """Return the rows of a message; never raises for bad data."""
    opened = open_records(RequestRow, message)
    refused = [error.reason for error in opened.rejected]
    rows = []
    for record in opened.records:
        values = msgspec.structs.asdict(record)
        del values["schema"]
        row = StoredRequest(**{**values, "flags": tuple(sorted(set(record.flags)))})
        if _all_fit(values) and _row_can_be_indexed(record):
            rows.append(row)
        else:
            refused.append("out_of_bounds")
    return Rows(tuple(rows), tuple(refused))


def _fits(finding: Finding) -> bool:
    named = _ID.fullmatch(finding.id) and _RULE.fullmatch(finding.rule) and finding.kv_pool
    texts = (finding.kv_pool, finding.engine, finding.model, *_names(finding))
    if finding.rule == RULE and not _is_heartbeat(finding):
        return False
    short = all(len(text) <= MAX_TEXT_CHARS for text in texts)
    times = (finding.observed_at_ms, finding.detected_at_ms)
    in_time = all(abs(at_ms) <= MAX_TIME_MS for at_ms in times)
    whole = msgspec.to_builtins(msgspec.structs.replace(finding, digests=None))
    if finding.digests is not None and not _are_digests(finding.digests):
        return False
    return bool(named) and short and in_time and _all_fit(whole) and _can_be_indexed(finding)


def _are_digests(told: Digests) -> bool:
    size = len(told.shingles)
    return (
        0 < size <= MOST_DIGESTS * DIGEST_BYTES
        and size % DIGEST_BYTES == 0
        and _KEY.fullmatch(told.key) is not None
    )


def _is_heartbeat(finding: Finding) -> bool:
    """Whether it is what it says, and hides nobody's bleed."""
    tenants = (finding.sink.tenant, finding.source.tenant)
    return heartbeat_of(finding) is not None and all(map(is_reserved, tenants))


def _names(finding: Finding) -> Iterator[str]:
    for party in (finding.sink, finding.source, *finding.other_sources):
        yield party.tenant
        yield party.request_id


def _can_be_indexed(finding: Finding) -> bool:
    """Of the indexes of `findings` only that of tenant and request has several names."""
    return _bytes(finding.sink.tenant, finding.sink.request_id) <= MAX_INDEXED_BYTES


def _row_can_be_indexed(row: RequestRow) -> bool:
    """The primary key of `request_rows` has three names, and so has the index of blast radii."""
    key = _bytes(row.tenant, row.request_id, row.kv_pool)
    blast = _bytes(row.kv_pool, row.engine, row.tenant)
    return max(key, blast) <= MAX_INDEXED_BYTES


def _bytes(*names: str) -> int:
    return sum(len(name.encode()) for name in names)


def _all_fit(value: Any) -> bool:  # noqa: ANN401 - plain values of any type
    """True if the store can keep it: PostgreSQL takes no NUL, SQLite no number past 64 bits."""
    if isinstance(value, str):
        return len(value) <= MAX_SENTENCE_CHARS and "\0" not in value
    if isinstance(value, int | float):
        return abs(value) <= MAX_COUNT  # neither is an infinity, nor what is no number
    if isinstance(value, dict):
        return all(_all_fit(key) and _all_fit(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return all(_all_fit(item) for item in value)
    return True
