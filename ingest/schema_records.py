"""Wire records v1 as msgspec Structs: one definition for MessagePack and JSON.

The bounds here are those that types can carry; `ingest/schema.py` checks the rest. Absent means
unknown, never zero. Unknown fields are ignored, so a minor version may add fields.
"""

import enum
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from detector.model import Kind, Span
from ingest.limits import (
    MAX_COUNT,
    MAX_PARTS,
    MAX_SIDE_TOKENS,
    MAX_SPANS,
    MAX_TEXT_CHARS,
    MAX_TIME_MS,
)

Name = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT_CHARS)]
Text = Annotated[str, Meta(max_length=MAX_TEXT_CHARS)]
Word = Annotated[str, Meta(pattern="^[a-z][a-z0-9_]{0,63}$")]
TimeMs = Annotated[int, Meta(ge=-MAX_TIME_MS, le=MAX_TIME_MS)]
Tokens = Annotated[int, Meta(ge=0, le=MAX_SIDE_TOKENS)]
Count = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Signed = Annotated[int, Meta(ge=-MAX_COUNT, le=MAX_COUNT)]
Status = Annotated[int, Meta(ge=0, le=999)]
Ratio = Annotated[float, Meta(ge=0, le=2)]  # engines round up; twice the pool is no measurement


class Record(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Base of the wire records. `schema` is "name/major" or "name/major.minor"; absent means v1."""

    kind_name: ClassVar[str] = ""
    schema: Text = ""


class SequenceRecord(Record, kw_only=True, eq=False):
    """One part of a prompt or response. `token_hashes` is uint32 little-endian, base64 in JSON.

    In the index of a batch it is absent, as is `key_id`: the batch holds both.
    """

    kind_name: ClassVar[str] = "sequence"
    tenant: Name
    request_id: Name
    kv_pool: Name
    engine: Name
    model: Text
    kind: Kind
    started_at_ms: TimeMs
    ended_at_ms: TimeMs
    token_hashes: bytes = b""
    token_count: Tokens
    key_id: Text = ""
    account: Text | None = None
    parent_id: Text | None = None
    part: Annotated[int, Meta(ge=0, lt=MAX_PARTS)] = 0
    parts: Annotated[int, Meta(ge=1, le=MAX_PARTS)] = 1
    prompt_token_count: Tokens | None = None
    finish_reason: Text | None = None
    status: Status | None = None
    reported_prompt_tokens: Count | None = None
    gateway_cache_hit: bool = False
    session: Text | None = None
    end_user: Text | None = None
    spans: Annotated[tuple[Span, ...], Meta(max_length=MAX_SPANS)] = ()

    def __repr__(self) -> str:
        """Metadata only, as for `Sequence`."""
        return f"SequenceRecord({self.kind} of {self.request_id!r}, tokens={self.token_count})"


class EngineRole(enum.StrEnum):
    """What an engine does in a disaggregated deployment."""

    PREFILL = "prefill"
    DECODE = "decode"
    BOTH = "both"


class Quality(enum.StrEnum):
    """How far a derived number can be trusted."""

    EXACT = "exact"
    ESTIMATE = "estimate"
    UNKNOWN = "unknown"


class RuntimeSample(Record):
    """One scrape of one engine: pool sizes and fills in tokens, counters as the engine has them.

    `rank` is the data-parallel rank that it is about, where the engine has several: each has a pool
    of its own.
    """

    kind_name: ClassVar[str] = "runtime"
    engine: Name
    kv_pool: Name
    sampled_at_ms: TimeMs
    engine_kind: Word
    rank: Count | None = None
    engine_version: Text | None = None
    role: EngineRole | None = None
    pool_tokens: Count | None = None
    configured_pool_tokens: Count | None = None
    context_tokens: Count | None = None
    max_input_tokens: Count | None = None
    used_tokens: Count | None = None
    evictable_tokens: Count | None = None
    running_requests: Count | None = None
    queued_requests: Count | None = None
    unreleased_tokens: Count | None = None
    unreleased_quality: Quality | None = None
    clear_failures_total: Count | None = None
    metadata_mismatches_total: Count | None = None
    transfer_failures_total: Count | None = None
    pool_usage_ratio: Ratio | None = None


class EventKind(enum.StrEnum):
    """What an engine said happened; every engine string maps to one of these.

    `blind` comes from the sidecar itself: something was not seen.
    """

    REJECTED = "rejected"
    ABORTED = "aborted"
    TIMED_OUT = "timed_out"
    CLEAR_FAILED = "clear_failed"
    TRANSFER_FAILED = "transfer_failed"
    METADATA_MISMATCH = "metadata_mismatch"
    CHECKSUM_MISMATCH = "checksum_mismatch"
    LEAK_DETECTED = "leak_detected"
    DOUBLE_FREE = "double_free"
    KV_CANARY = "kv_canary"
    LEASE_EXPIRED = "lease_expired"
    DEFERRED_RELEASE_TIMEOUT = "deferred_release_timeout"
    ALLOCATED = "allocated"
    TRANSFERRED = "transferred"
    RELEASED = "released"
    REUSED = "reused"
    BLIND = "blind"


class EngineEvent(Record):
    """One event of one engine. `detail` is a word of a fixed vocabulary, never text of the log.

    `block` (the keyed id of a KV block), `salt_tag` and `session_tag` are keyed tags. `count` is
    how much a sidecar lost, of what `detail` names, since it last told.
    """

    kind_name: ClassVar[str] = "engine-event"
    kind: EventKind
    engine: Name
    kv_pool: Name
    at_ms: TimeMs
    request_id: Name | None = None
    tenant: Name | None = None
    other_tenant: Name | None = None
    block: Text | None = None
    salt_tag: Text | None = None
    session_tag: Text | None = None
    prompt_tokens: Count | None = None
    limit_tokens: Count | None = None
    created_at_ms: TimeMs | None = None
    expires_at_ms: TimeMs | None = None
    detail: Word | None = None
    count: Count | None = None


class RequestRow(Record):
    """One request without its tokens, for coverage and blast radius.

    `rejected_by` names the limit that rejected it; `flags` are words of a fixed vocabulary.
    """

    kind_name: ClassVar[str] = "request"
    tenant: Name
    request_id: Name
    kv_pool: Name
    engine: Name
    model: Text
    started_at_ms: TimeMs
    ended_at_ms: TimeMs | None = None
    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None
    finish_reason: Text | None = None
    status: Status | None = None
    rejected_by: Word | None = None
    flags: Annotated[tuple[Word, ...], Meta(max_length=32)] = ()
