"""Sequence records and the core's `Sequence`: both conversions, and the bounds between fields."""

import numpy as np

from detector.errors import RecordError
from detector.model import (
    MAX_SEQUENCE_TOKENS,
    EngineId,
    Kind,
    PoolId,
    RequestId,
    Sequence,
    TenantId,
)
from ingest.schema_records import SequenceRecord

_BYTES_PER_TOKEN = 4  # uint32


def to_record(sequence: Sequence) -> SequenceRecord:
    """Return the wire form; hashes become little-endian bytes."""
    return SequenceRecord(
        tenant=sequence.tenant,
        request_id=sequence.request_id,
        kv_pool=sequence.kv_pool,
        engine=sequence.engine,
        model=sequence.model,
        kind=sequence.kind,
        started_at_ms=sequence.started_at_ms,
        ended_at_ms=sequence.ended_at_ms,
        token_hashes=sequence.token_hashes.astype("<u4", copy=False).tobytes(),
        token_count=len(sequence.token_hashes),
        key_id=sequence.key_id,
        account=sequence.account,
        parent_id=sequence.parent_id,
        part=sequence.part,
        parts=sequence.parts,
        prompt_token_count=sequence.prompt_token_count,
        finish_reason=sequence.finish_reason,
        status=sequence.status,
        reported_prompt_tokens=sequence.reported_prompt_tokens,
        gateway_cache_hit=sequence.gateway_cache_hit,
        session=sequence.session,
        end_user=sequence.end_user,
        spans=sequence.spans,
    )


def from_record(record: SequenceRecord) -> Sequence:
    """Return the core's form of a record that `schema.decode` accepted; hashes are read-only."""
    return Sequence(
        tenant=TenantId(record.tenant),
        request_id=RequestId(record.request_id),
        kv_pool=PoolId(record.kv_pool),
        engine=EngineId(record.engine),
        model=record.model,
        kind=record.kind,
        started_at_ms=record.started_at_ms,
        ended_at_ms=record.ended_at_ms,
        token_hashes=np.frombuffer(record.token_hashes, dtype="<u4").astype(np.uint32, copy=False),
        key_id=record.key_id,
        account=record.account,
        parent_id=None if record.parent_id is None else RequestId(record.parent_id),
        part=record.part,
        parts=record.parts,
        prompt_token_count=record.prompt_token_count,
        finish_reason=record.finish_reason,
        status=record.status,
        reported_prompt_tokens=record.reported_prompt_tokens,
        gateway_cache_hit=record.gateway_cache_hit,
        session=record.session,
        end_user=record.end_user,
        spans=record.spans,
    )


def check_sequence(record: SequenceRecord) -> None:
    """Check what types cannot: hash bytes, counts, parts, times and spans against one another.

    Raises RecordError with reason token_bytes, token_count, part_range, time_order, prompt_length
    or span_range.
    """
    if len(record.token_hashes) % _BYTES_PER_TOKEN:
        raise RecordError("token_bytes", "token_hashes is not a whole number of uint32")
    tokens = len(record.token_hashes) // _BYTES_PER_TOKEN
    if tokens != record.token_count or tokens > MAX_SEQUENCE_TOKENS:
        raise RecordError("token_count", "token_count disagrees with token_hashes or is too large")
    if record.part >= record.parts:
        raise RecordError("part_range", "part is not below parts")
    if record.ended_at_ms < record.started_at_ms:
        raise RecordError("time_order", "the sequence ended before it started")
    _check_prompt_length(record, tokens)
    _check_spans(record, tokens)


def _check_prompt_length(record: SequenceRecord, tokens: int) -> None:
    stated = record.prompt_token_count
    if record.kind is not Kind.PROMPT or stated is None:
        return
    if stated < tokens or (record.parts == 1 and stated != tokens):
        raise RecordError("prompt_length", "prompt_token_count disagrees with the prompt")


def _check_spans(record: SequenceRecord, tokens: int) -> None:
    end = 0
    for span in record.spans:
        if not end <= span.start < span.end <= tokens:
            raise RecordError("span_range", "spans overlap, are not in order or pass the end")
        end = span.end
