"""Packs sequences of one KV pool into one sealed value and unpacks it again, record by record.

Unpacking never raises for bad data, and a bad record does not take its neighbours with it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from detector.errors import RecordError
from ingest.compression import TOKEN_BYTES, compress, decompress
from ingest.schema import MAJOR, check, encode, parse
from ingest.schema_batches import (
    MAX_BATCH_RECORDS,
    MAX_BATCH_TOKENS,
    BatchIndex,
    SequenceBatch,
)
from ingest.schema_records import Record, SequenceRecord
from ingest.sealing import KeyRing, Sealed

_R = TypeVar("_R", bound=Record)
_R_co = TypeVar("_R_co", bound=Record, covariant=True)
_Raw = TypeVar("_Raw")

ASSOCIATED: Final = b"bleedwatch/1 batch index\0"
"""Authenticated before the index, so that nothing else sealed under these keys passes for it."""


class Unpacked(NamedTuple, Generic[_R_co]):
    """The good records of a message in their order, and why the others are not among them."""

    records: tuple[_R_co, ...]
    rejected: tuple[RecordError, ...] = ()
    lost: int | None = 0
    """Records that were lost; None when the message does not even say how many it held."""


def pack(records: Sequence[SequenceRecord], ring: KeyRing) -> bytes:
    """Return a sealed batch of 1 to MAX_BATCH_RECORDS records of one pool and one key.

    A record without `key_id` takes the ring's current one. Raises RecordError: two_pools, two_keys,
    batch_size, unknown_key, unencodable or a bound that a record breaks.
    """
    for record in records:
        check(record)
    return pack_entries([entry(record, ring.key_id) for record in records], ring)


class Entry(NamedTuple):
    """One sequence ready to be packed: where it belongs, its index entry and its hashes."""

    kv_pool: str
    key_id: str
    tenant: str
    encoded: bytes
    hashes: bytes

    @property
    def size(self) -> int:
        """Bytes of the entry before compression."""
        return len(self.encoded) + len(self.hashes)


def entry(record: SequenceRecord, key_id: str) -> Entry:
    """Split a checked record into metadata and hashes; `key_id` stands in for an absent one."""
    clear = msgspec.structs.replace(record, token_hashes=b"", key_id="")
    return Entry(
        record.kv_pool,
        record.key_id or key_id,
        record.tenant,
        encode(clear),
        record.token_hashes,
    )


def pack_entries(entries: Sequence[Entry], ring: KeyRing) -> bytes:
    """Return a sealed batch; see `pack`."""
    if not 1 <= len(entries) <= MAX_BATCH_RECORDS:
        raise RecordError("batch_size", f"a batch holds 1 to {MAX_BATCH_RECORDS} records")
    if len({one.kv_pool for one in entries}) > 1:
        raise RecordError("two_pools", "the records of a batch are of one KV pool")
    if len({one.key_id for one in entries}) > 1:
        raise RecordError("two_keys", "the records of a batch are hashed under one secret")
    counts = [len(one.hashes) // TOKEN_BYTES for one in entries]
    if sum(counts) > MAX_BATCH_TOKENS:
        raise RecordError("batch_size", f"a batch holds at most {MAX_BATCH_TOKENS} tokens")
    packed = compress((one.tenant, one.hashes) for one in entries)
    index = encode(
        BatchIndex(
            key_id=entries[0].key_id,
            kv_pool=entries[0].kv_pool,
            starts=packed.starts,
            counts=counts,
            frames=packed.frames,
            records=[msgspec.Raw(one.encoded) for one in entries],
        )
    )
    sealed = ring.seal(entries[0].key_id, packed.data, ASSOCIATED + index)
    return encode(
        SequenceBatch(
            schema=f"{SequenceBatch.kind_name}/{MAJOR}",
            index=index,
            salt=sealed.salt,
            nonce=sealed.nonce,
            sealed=sealed.data,
        )
    )


def read_index(data: bytes) -> BatchIndex:
    """Return the clear index of a batch; whoever has no secret reads this much, unproven.

    Raises RecordError: too_large, undecodable, too_deep, schema_version or wrong_type.
    """
    return parse(BatchIndex, parse(SequenceBatch, data).index)


def unpack(data: bytes, ring: KeyRing) -> Unpacked[SequenceRecord]:
    """Open a sealed batch.

    As a whole it may be too_large, undecodable, too_deep, schema_version, wrong_type, unknown_key,
    seal_broken, frame_range, frame_broken or offset_range; a record of it wrong_type, two_pools,
    two_keys, not_sealed (hashes in the index), or what `schema.decode` refuses.
    """
    index = None
    try:
        batch = parse(SequenceBatch, data)
        index = parse(BatchIndex, batch.index)
        sealed = Sealed(batch.salt, batch.nonce, batch.sealed)
        packed = ring.open(index.key_id, sealed, ASSOCIATED + batch.index)
        hashes = decompress(packed, index.frames)
        _check_offsets(index, len(hashes) // TOKEN_BYTES)
    except RecordError as error:
        return Unpacked((), (error,), len(index.records) if index else None)
    places = zip(index.records, index.starts, index.counts, strict=True)
    return read_each(places, lambda place: _sequence(index, hashes, *place))


def read_each(raw: Iterable[_Raw], read: Callable[[_Raw], _R]) -> Unpacked[_R]:
    """Read the records of a batch one by one, setting aside those that are refused."""
    good: list[_R] = []
    bad: list[RecordError] = []
    for one in raw:
        try:
            good.append(read(one))
        except RecordError as error:
            bad.append(error)
    return Unpacked(tuple(good), tuple(bad), len(bad))


def _check_offsets(index: BatchIndex, tokens: int) -> None:
    """Every token belongs to exactly one record: no overlap, no gap, nothing beyond the end."""
    if not len(index.starts) == len(index.counts) == len(index.records):
        raise RecordError("offset_range", "the index has not one offset and count for each record")
    at = 0
    for start, count in sorted(zip(index.starts, index.counts, strict=True)):
        if start != at:
            raise RecordError("offset_range", "the records of the index overlap or leave a gap")
        at += count
    if at != tokens:
        raise RecordError("offset_range", "the records of the index are not all that is sealed")


def _sequence(
    index: BatchIndex, hashes: bytes, raw: msgspec.Raw, start: int, count: int
) -> SequenceRecord:
    record = parse(SequenceRecord, bytes(raw))
    if record.token_hashes:
        raise RecordError("not_sealed", "the clear index of a batch holds token hashes")
    if record.key_id not in ("", index.key_id):
        raise RecordError("two_keys", "a record was hashed under another secret than its batch")
    if record.kv_pool != index.kv_pool:
        raise RecordError("two_pools", "a record is of another KV pool than its batch")
    record.key_id = index.key_id
    record.token_hashes = hashes[start * TOKEN_BYTES : (start + count) * TOKEN_BYTES]
    check(record)
    return record
