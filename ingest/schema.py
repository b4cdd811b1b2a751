"""Encodes and decodes the wire records v1: MessagePack between our processes, JSON on input too.

What cannot be decoded or breaks a bound is a RecordError whose reason labels the dead letter. Its
text names a field at most, never a value.
"""

import enum
import math
import re
from typing import Final, TypeVar

import msgspec

from detector.errors import RecordError
from ingest.schema_records import Record, RuntimeSample, SequenceRecord
from ingest.schema_sequence import check_sequence

MAJOR: Final = 1

MAX_RECORD_BYTES: Final = 2 * 1024 * 1024
"""Largest encoded record: a full part is 512 KiB of hashes (700 KiB as base64) plus its spans."""

_R = TypeVar("_R", bound=Record)

_LABEL: Final = re.compile(r"(?P<name>[a-z-]{1,32})/(?P<major>\d{1,4})(?:\.\d{1,4})?")
_PLACE: Final = re.compile(r" - at `\$((?:\.[a-z_]{1,40}|\[\.\.\.\]|\[\d{1,6}\])*)`$")


class Encoding(enum.StrEnum):
    """The two forms of a record, by the value of the `content-type` header."""

    MSGPACK = "application/msgpack"
    JSON = "application/json"


class _Version(msgspec.Struct):
    schema: str = ""


def encode(record: Record, encoding: Encoding = Encoding.MSGPACK) -> bytes:
    """Encode a record; default values are left out.

    Raises RecordError("unencodable") for lone surrogates and numbers beyond 64 bits, which the door
    lets nobody bring in.
    """
    try:
        if encoding is Encoding.JSON:
            return msgspec.json.encode(record)
        return msgspec.msgpack.encode(record)
    except (UnicodeEncodeError, OverflowError):
        raise RecordError("unencodable", "the record holds what no encoding can carry") from None


def decode(kind: type[_R], data: bytes, encoding: Encoding = Encoding.MSGPACK) -> _R:
    """Decode and check one record.

    Raises RecordError with reason too_large, undecodable, too_deep, schema_version, wrong_type
    (also a length or range that is out of bounds), number_range, time_order, token_bytes,
    token_count, part_range, prompt_length or span_range.
    """
    record = parse(kind, data, encoding)
    check(record)
    return record


def parse(kind: type[_R], data: bytes | memoryview, encoding: Encoding = Encoding.MSGPACK) -> _R:
    """Decode one record as far as types and version go; see `decode` for the reasons."""
    if len(data) > MAX_RECORD_BYTES:
        raise RecordError("too_large", f"the record is larger than {MAX_RECORD_BYTES} bytes")
    record = _decode(kind, data, encoding)
    check_version(record.schema, kind.kind_name)
    return record


def check(record: Record) -> None:
    """Check what types cannot carry; see `decode` for the reasons."""
    if isinstance(record, SequenceRecord):
        check_sequence(record)
    elif isinstance(record, RuntimeSample) and not math.isfinite(record.pool_usage_ratio or 0.0):
        raise RecordError("number_range", "pool_usage_ratio is not a number")


def check_version(label: str, name: str) -> None:
    """Accept "name/1", "name/1.x" and "" (version 1); for the `bleedwatch-schema` header as well.

    Raises RecordError("schema_version") for another name or major version.
    """
    if not label:
        return
    match = _LABEL.fullmatch(label)
    if match is None or match["name"] != name or int(match["major"]) != MAJOR:
        raise RecordError(
            "schema_version",
            f"the record is not of schema {name}/{MAJOR}",
            hint="update the older side",
        )


def _decode(kind: type[_R], data: bytes | memoryview, encoding: Encoding) -> _R:
    try:
        return _raw(kind, data, encoding)
    except msgspec.ValidationError as error:
        _check_version_first(kind, data, encoding)
        place = _PLACE.search(str(error))
        where = f"field {place[1].lstrip('.')}" if place and place[1] else "the record"
        raise RecordError("wrong_type", f"{where} has a wrong type, length or range") from None
    except (msgspec.DecodeError, UnicodeDecodeError, OverflowError):
        raise RecordError("undecodable", f"the record is not {encoding.name}") from None
    except RecursionError:
        raise RecordError("too_deep", "the record is nested too deeply") from None


def _check_version_first(kind: type[Record], data: bytes | memoryview, encoding: Encoding) -> None:
    """Blame the version rather than a field when a newer major version changed the types."""
    try:
        label = _raw(_Version, data, encoding).schema
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return
    check_version(label, kind.kind_name)


_Any = TypeVar("_Any")


def _raw(kind: type[_Any], data: bytes | memoryview, encoding: Encoding) -> _Any:
    if encoding is Encoding.JSON:
        return msgspec.json.decode(data, type=kind)
    return msgspec.msgpack.decode(data, type=kind)
