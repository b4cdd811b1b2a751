"""Runtime samples, engine events and requests made by hand; times are seconds."""

from typing import Any

from detector.model import Kind
from ingest.schema_records import EngineEvent, EventKind, RuntimeSample, SequenceRecord


def sample(at_s: float, **more: Any) -> RuntimeSample:
    """Return a sample of engine `e` in pool `p` that says nothing but what is given."""
    given: dict[str, Any] = {"engine": "e", "kv_pool": "p", "engine_kind": "sglang"}
    return RuntimeSample(**(given | {"sampled_at_ms": round(at_s * 1000)} | more))


def healthy(at_s: float, **more: Any) -> RuntimeSample:
    """Return a sample of an engine that is well: busy now and then, nothing lost."""
    known: dict[str, Any] = {
        "pool_tokens": 500_000, "context_tokens": 131_072, "max_input_tokens": 131_066,
        "used_tokens": 90_000, "pool_usage_ratio": 0.18, "running_requests": int(at_s) % 3,
        "queued_requests": 0, "unreleased_tokens": 64, "unreleased_quality": "exact",
        "clear_failures_total": 0, "metadata_mismatches_total": 0, "transfer_failures_total": 3,
    }  # fmt: skip
    return sample(at_s, **(known | more))


def event(kind: EventKind, at_s: float, **more: Any) -> EngineEvent:
    """Return an event of engine `e` in pool `p`, unless told otherwise."""
    given: dict[str, Any] = {"engine": "e", "kv_pool": "p", "kind": kind}
    return EngineEvent(**(given | {"at_ms": round(at_s * 1000)} | more))


def sent(request: str, at_s: float, tokens: int, **more: Any) -> SequenceRecord:
    """Return the prompt of a request of tenant `b`, without its tokens."""
    return _record(Kind.PROMPT, request, at_s, at_s, tokens, **more)


def answered(request: str, at_s: float, tokens: int, **more: Any) -> SequenceRecord:
    """Return the response to it, which ends two seconds later."""
    return _record(Kind.RESPONSE, request, at_s, at_s + 2, tokens, **more)


def _record(
    kind: Kind, request: str, at_s: float, end_s: float, tokens: int, **more: Any
) -> SequenceRecord:
    given: dict[str, Any] = {
        "tenant": "b", "request_id": request, "kv_pool": "p", "engine": "e", "model": "m",
        "kind": kind, "started_at_ms": round(at_s * 1000), "ended_at_ms": round(end_s * 1000),
        "token_count": tokens,
    }  # fmt: skip
    return SequenceRecord(**(given | more))
