"""The records the core works on: a sequence is one prompt or one response as hashed tokens."""

import enum
from typing import NewType

import msgspec
import numpy as np
from numpy.typing import NDArray

TenantId = NewType("TenantId", str)
RequestId = NewType("RequestId", str)
EngineId = NewType("EngineId", str)
PoolId = NewType("PoolId", str)
Hashes = NDArray[np.uint32]

MAX_SEQUENCE_TOKENS = 131_072
"""Longest sequence in one part: the default Kafka message limit then holds."""

PART_OVERLAP = 9
"""Tokens that two parts of one long sequence share: one less than a shingle, so none is lost."""


class Kind(enum.StrEnum):
    """Which half of a request a sequence is."""

    PROMPT = "prompt"
    RESPONSE = "response"


class Role(enum.StrEnum):
    """Who wrote a span of a prompt; TEMPLATE marks the chat template's own tokens."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    TEMPLATE = "template"


class Span(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Half-open token range [start, end) of a prompt, written by `role`."""

    role: Role
    start: int
    end: int


class Sequence(msgspec.Struct, kw_only=True, eq=False, gc=False):
    """One prompt or one response of one request, as keyed token hashes.

    `token_hashes` has shape (token_count,) and dtype uint32. `started_at_ms` is the arrival of
    the request for both kinds (age is measured start to start); `ended_at_ms` is the same instant
    for a prompt and the last token for a response. Times are milliseconds of event time.
    A request is identified by (tenant, request_id, started_at_ms): engines accept repeated ids.
    """

    tenant: TenantId
    request_id: RequestId
    kv_pool: PoolId
    engine: EngineId
    model: str
    kind: Kind
    started_at_ms: int
    ended_at_ms: int
    token_hashes: Hashes
    key_id: str = ""
    account: str | None = None
    parent_id: RequestId | None = None
    part: int = 0
    parts: int = 1
    prompt_token_count: int | None = None
    finish_reason: str | None = None
    status: int | None = None
    reported_prompt_tokens: int | None = None
    gateway_cache_hit: bool = False
    session: str | None = None
    end_user: str | None = None
    spans: tuple[Span, ...] = ()

    def __repr__(self) -> str:
        """Metadata only: hashes are a substitution cipher and stay out of logs and tracebacks."""
        return (
            f"Sequence({self.kind} of {self.request_id!r}, tenant={self.tenant!r}, "
            f"pool={self.kv_pool!r}, tokens={len(self.token_hashes)})"
        )
