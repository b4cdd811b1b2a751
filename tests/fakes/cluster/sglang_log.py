"""Lines of an SGLang 0.5.23 log: the level-3 request log in JSON, and what the engine says."""

import json
from datetime import UTC, datetime
from typing import Any, Final

from detector.sample.tokenizer import IM_END
from tests.fakes.cluster.call import Call

EPOCH_S: Final = 1_790_000_000
"""When simulated time begins."""


def said(now_s: float, message: str) -> str:
    """Return a line of the engine's own log."""
    return f"[{_moment(now_s):%Y-%m-%d %H:%M:%S}] {message}"


def started(now_s: float) -> str:
    """Return what a server says once it serves."""
    return said(now_s, "The server is fired up and ready to roll!")


def received(call: Call, now_s: float) -> str:
    """Return the line of a request that has come."""
    return _record("request.received", call, now_s, {"obj": _asked(call)})


def finished(call: Call, now_s: float) -> str:
    """Return the line of a request that has ended with an answer, or was aborted by the engine."""
    out = {"text": "", "output_ids": call.output, "meta_info": _meta(call, now_s)}
    return _record("request.finished", call, now_s, {"obj": _asked(call), "out": out})


def over_limit(call: Call, now_s: float, *, limit_tokens: int) -> str:
    """Return the error of a scheduler that rejects a prompt."""
    return said(
        now_s,
        f"Input length ({len(call.prompt)} tokens) exceeds the maximum allowed length "
        f"({limit_tokens} tokens). Use a shorter input or enable --allow-auto-truncate., "
        f"self.rid='{call.request_id}'",
    )


def disconnected(call: Call, now_s: float) -> str:
    """Return what is said when a client has gone away."""
    return said(
        now_s,
        "Request is disconnected from the client side (type 1). "
        f"Abort request obj.rid='{call.request_id}'",
    )


def transfer_failed(call: Call, now_s: float, *, room: int) -> str:
    """Return the error of a decode engine that did not get its KV."""
    return said(
        now_s,
        f"Decode transfer failed for request rank=0 decode_req.req.rid='{call.request_id}' "
        f"decode_req.req.bootstrap_room={room} with exception KVTransferError("
        f"bootstrap_room={room}): Failed due to an unknown reason from another rank",
    )


def checksum_mismatch(call: Call, now_s: float, *, room: int, expected: int, got: int) -> str:
    """Return what --disaggregation-enable-kv-checksum says of foreign KV."""
    return said(
        now_s,
        f"KV checksum mismatch req={call.request_id} bootstrap_room={room} "
        f"expected=0x{expected:08x} got=0x{got:08x}",
    )


def metadata_mismatch(call: Call, now_s: float, *, room: int, other: int) -> str:
    """Return what the guard of the metadata buffer says."""
    return said(
        now_s,
        f"Context corruption detected: Request {call.request_id} (bootstrap_room={room}) received "
        f"metadata from bootstrap_room={other}. Metadata buffer index: 7. This indicates metadata "
        "buffer index collision.",
    )


def deferred_release(now_s: float, *, room: int, seconds: float) -> str:
    """Return what is said when pages are released without knowing whether they are written."""
    return said(
        now_s,
        f"Deferred KV release for room {room} timed out after {seconds:.1f}s without a full drain "
        "ack from prefill; releasing anyway.",
    )


def leak(now_s: float, *, total: int, available: int, evictable: int) -> str:
    """Return what the idle check says of pages that nobody holds."""
    return said(
        now_s,
        f"pool memory leak detected! [full] total={total}, available={available}, "
        f"evictable={evictable}, protected=0, session_held=0, uncached=0",
    )


def double_free(now_s: float, *, pages: int) -> str:
    """Return what the page invariants say of pages that are free twice."""
    return said(now_s, f"KV double free: sub-pool 0 has {pages} duplicate pages.")


def _moment(now_s: float) -> datetime:
    return datetime.fromtimestamp(EPOCH_S + now_s, UTC)


def _record(event: str, call: Call, now_s: float, fields: dict[str, Any]) -> str:
    stamp = _moment(now_s).replace(tzinfo=None).isoformat(timespec="microseconds")
    headers = {"x-request-id": call.request_id, "x-tenant-id": call.tenant}
    record = {"timestamp": stamp, "event": event, "rid": call.request_id, **fields}
    return said(now_s, json.dumps(record | {"headers": headers}))


def _asked(call: Call) -> dict[str, Any]:
    return {
        "rid": call.request_id,
        "session_id": call.session,
        "text": None,
        "input_ids": call.prompt,
        "sampling_params": {"temperature": 0.7, "max_new_tokens": 900},
        "stream": False,
        "extra_key": f"tenant={call.tenant}",
        "cache_salt": f"salt-{call.tenant}",
    }


def _meta(call: Call, now_s: float) -> dict[str, Any]:
    count = len(call.output)
    reason: dict[str, Any] = {"type": "length", "length": count}
    if call.finish_reason == "stop":
        reason = {"type": "stop", "matched": IM_END}
    elif call.finish_reason == "abort":
        reason = {"type": "abort", "message": call.message, "status_code": 500}
    return {
        "id": call.request_id,
        "finish_reason": reason,
        "prompt_tokens": call.told_prompt_tokens,
        "completion_tokens": count,
        "cached_tokens": call.cached_tokens,
        "request_received_ts": round(EPOCH_S + call.arrives_s, 3),
        "request_finished_ts": round(EPOCH_S + now_s, 3),
    }
