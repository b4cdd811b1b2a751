"""Opens a message of an input topic in whatever form it came: a batch, or one record by itself.

The headers say which. Without them it is a MessagePack batch, as our own processes send; JSON
without a schema is one record by itself, as other producers send samples, events and rows.
"""

from collections.abc import Callable
from typing import Final, TypeVar

from detector.errors import RecordError
from ingest.broker import BrokerRecord
from ingest.envelope import Unpacked, unpack
from ingest.record_batches import BATCH_OF, Clear, unpack_clear
from ingest.record_headers import CONTENT_TYPE, SCHEMA, header
from ingest.schema import Encoding, check_version, decode
from ingest.schema_batches import SequenceBatch
from ingest.schema_records import Record, SequenceRecord
from ingest.sealing import KeyRing

_R = TypeVar("_R", bound=Record)

_ENCODINGS: Final = {encoding.value: encoding for encoding in Encoding}


def open_sequences(message: BrokerRecord, ring: KeyRing) -> Unpacked[SequenceRecord]:
    """Return the sequences of a message; never raises for bad data.

    Besides the reasons of `unpack` and `decode`: empty, content_type, and not_sealed for a sequence
    by itself that holds hashes. Only a request without token ids may come by itself.
    """
    return _open(message, SequenceRecord, SequenceBatch.kind_name, lambda data: unpack(data, ring))


def open_records(kind: type[Clear], message: BrokerRecord) -> Unpacked[Clear]:
    """Return the samples, events or rows of a message; never raises for bad data."""
    return _open(message, kind, BATCH_OF[kind].kind_name, lambda data: unpack_clear(kind, data))


def _open(
    message: BrokerRecord,
    kind: type[_R],
    batch_name: str,
    unpack_batch: Callable[[bytes], Unpacked[_R]],
) -> Unpacked[_R]:
    single = False
    try:
        value = _value(message)
        encoding = _encoding(header(message.headers, CONTENT_TYPE))
        label = header(message.headers, SCHEMA) or ""
        single = label.startswith(f"{kind.kind_name}/") or (not label and encoding is Encoding.JSON)
        check_version(label, kind.kind_name if single else batch_name)
        if single:
            return Unpacked((_single(kind, value, encoding),))
        _check_batch_encoding(encoding)
    except RecordError as error:
        return Unpacked((), (error,), 1 if single else None)
    return unpack_batch(value)


def _value(message: BrokerRecord) -> bytes:
    if not message.value:
        raise RecordError("empty", "the message has no value")
    return message.value


def _single(kind: type[_R], value: bytes, encoding: Encoding) -> _R:
    record = decode(kind, value, encoding)
    if isinstance(record, SequenceRecord) and record.token_count:
        raise RecordError(
            "not_sealed",
            "a sequence came with its hashes in the clear",
            hint="send sequences in sealed batches",
        )
    return record


def _check_batch_encoding(encoding: Encoding) -> None:
    if encoding is not Encoding.MSGPACK:
        raise RecordError(
            "content_type", "a batch is MessagePack", hint="send single records as JSON"
        )


def _encoding(content_type: str | None) -> Encoding:
    """Return the encoding that a content type names; parameters such as a charset are ignored."""
    if content_type is None:
        return Encoding.MSGPACK
    name = content_type.partition(";")[0].strip().lower()
    if name not in _ENCODINGS:
        raise RecordError("content_type", "the content type is neither MessagePack nor JSON")
    return _ENCODINGS[name]
