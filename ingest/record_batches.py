"""Batches of records without tokens: runtime samples, engine events and request rows, in the clear.

As with sequences, unpacking never raises for bad data and a bad record costs only itself.
"""

from collections.abc import Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from detector.errors import RecordError
from ingest.envelope import Entry, Unpacked, read_each
from ingest.schema import MAJOR, check, encode, parse
from ingest.schema_batches import (
    MAX_BATCH_RECORDS,
    EngineEventBatch,
    RecordBatch,
    RequestBatch,
    RuntimeBatch,
)
from ingest.schema_records import EngineEvent, Record, RequestRow, RuntimeSample

Clear = TypeVar("Clear", RuntimeSample, EngineEvent, RequestRow)
"""The kinds of records that hold no tokens."""

BATCH_OF: Final[Mapping[type[Record], type[RecordBatch]]] = {
    RuntimeSample: RuntimeBatch,
    EngineEvent: EngineEventBatch,
    RequestRow: RequestBatch,
}


def pack_clear(records: Sequence[Clear]) -> bytes:
    """Return a batch of 1 to MAX_BATCH_RECORDS records of one kind and one KV pool.

    Raises RecordError: batch_size, two_pools, unencodable or a bound that a record breaks.
    """
    if not records:
        raise RecordError("batch_size", f"a batch holds 1 to {MAX_BATCH_RECORDS} records")
    return pack_clear_entries(type(records[0]), [clear_entry(record) for record in records])


def clear_entry(record: Clear) -> Entry:
    """Check and encode a record, ready to be packed."""
    check(record)
    return Entry(record.kv_pool, "", "", encode(record), b"")


def pack_clear_entries(kind: type[Clear], entries: Sequence[Entry]) -> bytes:
    """Return a batch of records of this kind; see `pack_clear`."""
    if not 1 <= len(entries) <= MAX_BATCH_RECORDS:
        raise RecordError("batch_size", f"a batch holds 1 to {MAX_BATCH_RECORDS} records")
    if len({one.kv_pool for one in entries}) > 1:
        raise RecordError("two_pools", "the records of a batch are of one KV pool")
    batch = BATCH_OF[kind]
    return encode(
        batch(
            schema=f"{batch.kind_name}/{MAJOR}",
            kv_pool=entries[0].kv_pool,
            records=[msgspec.Raw(one.encoded) for one in entries],
        )
    )


def unpack_clear(kind: type[Clear], data: bytes) -> Unpacked[Clear]:
    """Open a batch of records of this kind.

    As a whole it may be too_large, undecodable, too_deep, schema_version or wrong_type; a record of
    it two_pools or what `schema.decode` refuses.
    """
    try:
        batch = parse(BATCH_OF[kind], data)
    except RecordError as error:
        return Unpacked((), (error,), None)

    def read(raw: msgspec.Raw) -> Clear:
        record = parse(kind, bytes(raw))
        if record.kv_pool != batch.kv_pool:
            raise RecordError("two_pools", "a record is of another KV pool than its batch")
        check(record)
        return record

    return read_each(batch.records, read)
