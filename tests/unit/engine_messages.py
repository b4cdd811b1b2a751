# ruff: noqa: E501 - one message, one row
"""Messages that engines write, with the event that each must be; and messages that are none."""

from typing import NamedTuple

from ingest.schema_records import EventKind as K


class Row(NamedTuple):
    """A message as an engine's source spells it, and what must come of it."""

    text: str
    kind: K
    detail: str | None = None
    request_id: str | None = None
    prompt_tokens: int | None = None
    limit_tokens: int | None = None


_CONTEXT = "This model's maximum context length is 512 tokens. However, your prompt contains"
_BY = "create_error_response called with VLLMValidationError:"
_ROOM = "req.bootstrap_room=77 with exception KVTransferError(bootstrap_room=77): lost"

VLLM = (
    Row(f"{_BY} {_CONTEXT} at least 513 input tokens, which", K.REJECTED, "over_long_at_least", None, 513, 512),
    Row(f"{_BY} {_CONTEXT} 560 input tokens, which exceeds", K.REJECTED, "over_long", None, 560, 512),
    Row(f"{_BY} {_CONTEXT} 99000 characters (more than 8192", K.REJECTED, "over_long_characters", None, None, 512),
    Row(f"{_BY} max_tokens=5000 cannot be greater than max_model_len=512. Please", K.REJECTED, "max_tokens", None, None, 512),
    Row(f"{_BY} Token id is out of vocabulary", K.REJECTED, "invalid_request"),
    Row("Request cmpl-a-0 failed (bad request): queue.", K.REJECTED, "bad_request", "cmpl-a-0"),
    Row("Request cmpl-a-0 failed (input error): bad.", K.REJECTED, "input_error", "cmpl-a-0"),
    Row("Request id cmpl-a-0 already running.", K.REJECTED, "duplicate_id", "cmpl-a-0"),
    Row("Request cmpl-a-0 aborted.", K.ABORTED, None, "cmpl-a-0"),
    Row("Request id with spaces aborted.", K.ABORTED, None, "id with spaces"),
    Row("Aborted request(s) cmpl-a-0-aca2eda5.", K.ABORTED, None, "cmpl-a-0"),
    Row("Aborted request(s) cmpl-probe-long-1.", K.ABORTED, None, "cmpl-probe-long-1"),
    Row("Aborted request(s) cmpl-a-aca2eda5,cmpl-b-aca2eda6.", K.ABORTED, "several"),
    Row("Request cmpl-a-0 failed (engine dead).", K.ABORTED, "engine_dead", "cmpl-a-0"),
    Row("Request cmpl-a-0 failed due to OSError('x').", K.ABORTED, "engine_error", "cmpl-a-0"),
    Row("Failed to reset prefix cache because some blocks (4) are not freed yet", K.CLEAR_FAILED, "blocks_in_use"),
    Row("Failing 2 request(s) due to KV load failure (failure_policy=fail, 640 tokens affected). Request IDs: a, b", K.TRANSFER_FAILED, "kv_load"),
    Row("Recovered from KV load failure: 2 request(s) rescheduled (16788 tokens affected)", K.TRANSFER_FAILED, "kv_load_recovered"),
    Row("NIXL transfer failure: post failed | Context: {}", K.TRANSFER_FAILED, "nixl"),
    Row("Releasing expired KV blocks for request r-1 which were retrieved by 0 remote worker(s) before lease expired.", K.LEASE_EXPIRED, "before_retrieval", "r-1"),
    Row("Releasing expired KV blocks for request r-1 which were retrieved by 0 decode worker(s) within 120 seconds.", K.LEASE_EXPIRED, "before_retrieval", "r-1"),
    Row("Potentially invalid KV blocks for unrecognized request r-1 were retrieved by a decode worker. They may have expired.", K.METADATA_MISMATCH, "unrecognized_request", "r-1"),
    Row("Unrecognized request r-1 notif (may have expired).", K.METADATA_MISMATCH, "unrecognized_notification", "r-1"),
    Row("Timeout waiting for P side ready: {'r-1'}", K.TIMED_OUT, "transfer_wait"),
    Row("Request r-1 expired before sending on P side.", K.LEASE_EXPIRED, "before_send", "r-1"),
    Row("Request r-1 timed out after 480 seconds without being sent. Freeing its blocks on the producer side.", K.LEASE_EXPIRED, "never_sent", "r-1"),
    Row("req r-1: KV group count mismatch: local=1, remote=2", K.METADATA_MISMATCH, "kv_groups", "r-1"),
    Row("KV group count mismatch: local=1, remote=2", K.METADATA_MISMATCH, "kv_groups"),
    Row("pulling kv_caches for r-1 failed: timeout", K.TRANSFER_FAILED, "mooncake_pull", "r-1"),
)  # fmt: skip

SGLANG = (
    Row("[http_server] Error: The input (560 tokens) is longer than the model's context length (512 tokens).", K.REJECTED, "over_context", None, 560, 512),
    Row("The input (560 tokens) is longer than the model's context length (512 tokens).", K.REJECTED, "over_context", None, 560, 512),
    Row("[http_server] Error: Requested token count exceeds the model's maximum context length of 512 tokens. You requested a total of 668 tokens: 163 tokens from the input messages and 505 tokens for the completion.", K.REJECTED, "total_over_context", None, 163, 512),
    Row("Requested token count exceeds the model's maximum context length of 512 tokens. You requested a total of 668", K.REJECTED, "total_over_context", None, None, 512),
    Row("Input length (284937 tokens) exceeds the maximum allowed length (284922 tokens). Use a shorter input or enable --allow-auto-truncate., self.rid='r-1'", K.REJECTED, "over_input_limit", "r-1", 284937, 284922),
    Row("Input length (284937 tokens) exceeds the maximum allowed length (284922 tokens).", K.REJECTED, "over_input_limit", None, 284937, 284922),
    Row("Request prompt exceeds the KV memory budget: input_len=900.", K.REJECTED, "over_kv_budget", None, 900),
    Row("Request r-1 exceeds the maximum number of tokens: 284937 > 284928", K.REJECTED, "over_kv_pool", "r-1", 284937, 284928),
    Row("The request queue is full.", K.REJECTED, "queue_full"),
    Row("[http_server] Error: Request is disconnected from the client side (type 1). Abort request obj.rid='r-1'", K.ABORTED, "disconnected", "r-1"),
    Row("Request is disconnected from the client side (type 3). Abort request obj.rid='r-1'", K.ABORTED, "disconnected", "r-1"),
    Row("retract_decode: aborted request r-1: no memory", K.ABORTED, "retracted", "r-1"),
    Row("Request 5521 timed out after 300.0s", K.TIMED_OUT, "transfer_wait"),
    Row("pool memory leak detected! [full] total=1536, available=55, evictable=1208, protected=0, session_held=0, uncached=0", K.LEAK_DETECTED, "kv_pool"),
    Row("pool-bytes memory leak detected! [full] total=1", K.LEAK_DETECTED, "kv_pool"),
    Row("token_to_kv_pool_allocator memory leak detected! self.max_total_num_tokens=9, available_size=8", K.LEAK_DETECTED, "kv_pool"),
    Row("token_to_kv_pool_allocator memory leak detected! [dp=0] expected=108544, avail=108416, evict=0, protected=0", K.LEAK_DETECTED, "kv_pool"),
    Row("req_to_token_pool memory leak detected!available_size=1, session_held=0, total_size=2", K.LEAK_DETECTED, "request_slots"),
    Row("full memory leak detected! total=1", K.LEAK_DETECTED, "kv_pool"),
    Row("swa memory leak detected! total=1", K.LEAK_DETECTED, "window_pool"),
    Row("mamba memory leak detected! total=1", K.LEAK_DETECTED, "state_pool"),
    Row("Full Pool Mem Leak Detected! total=1", K.LEAK_DETECTED, "kv_pool_busy"),
    Row("SWA Pool Mem Leak Detected! total=1", K.LEAK_DETECTED, "window_pool_busy"),
    Row("KV cache pool leak detected!", K.LEAK_DETECTED, "kv_pool"),
    Row("KV double free: sub-pool 0 has 3 duplicate pages.", K.DOUBLE_FREE, "duplicate_pages"),
    Row("KV page use-after-free: 2 owner page refs are in the free pool, sample pages=[1]", K.DOUBLE_FREE, "use_after_free"),
    Row("kv_canary violation: launch_tag=1 fail_reason=a+b slot_idx=4 position=2 stored_token=17 expected_token=18", K.KV_CANARY),
    Row("Context corruption detected: Request r-1 (bootstrap_room=5) received metadata from bootstrap_room=6. Metadata buffer index: 1. This indicates metadata buffer index collision.", K.METADATA_MISMATCH, "bootstrap_room", "r-1"),
    Row("Metadata corruption detected - bootstrap_room mismatch", K.METADATA_MISMATCH, "bootstrap_room"),
    Row("Metadata unexpectedly not ready after readiness gate: request r-1", K.METADATA_MISMATCH, "not_ready"),
    Row("KV checksum mismatch req=r-1 bootstrap_room=5 expected=0x1 got=0x2", K.CHECKSUM_MISMATCH, None, "r-1"),
    Row("KV checksum mismatch on a peer rank", K.CHECKSUM_MISMATCH, "peer_rank"),
    Row("KV checksum mismatch req=r-1 on a peer rank", K.CHECKSUM_MISMATCH, "peer_rank", "r-1"),
    Row(f"Prefill transfer failed for request rank=0 req.rid='r-1' {_ROOM}", K.TRANSFER_FAILED, "prefill_transfer", "r-1"),
    Row(f"Prefill bootstrap failed for request rank=0 req.rid='r-1' {_ROOM}", K.TRANSFER_FAILED, "prefill_bootstrap", "r-1"),
    Row("Decode transfer failed for request rank=1 decode_req.req.rid='r-1' decode_req.req.bootstrap_room=7", K.TRANSFER_FAILED, "decode_transfer", "r-1"),
    Row("Decode handshake failed for request rank=1 decode_req.req.rid='r-1' decode_req", K.TRANSFER_FAILED, "decode_handshake", "r-1"),
    Row("KVTransferError(bootstrap_room=9): Aborted by AbortReq.", K.TRANSFER_FAILED, "transfer_error"),
    Row("Lost connection with prefill instance (bootstrap_addr: 10.0.0.1:8998), 3 requests affected", K.TRANSFER_FAILED, "lost_prefill"),
    Row("Deferred KV release for room 12 timed out after 30.0s without a full drain ack from prefill; releasing anyway.", K.DEFERRED_RELEASE_TIMEOUT),
    Row("Cache not flushed because there are pending requests. #queue-req: 0, #running-req: 1", K.CLEAR_FAILED, "requests_pending"),
    Row("Deferred flush_cache timed out while waiting for idle state.", K.CLEAR_FAILED, "idle_wait"),
    Row("Weights were updated, but the cache was not flushed because there are pending requests", K.CLEAR_FAILED, "weights_updated"),
)  # fmt: skip

FINISH_REASONS = (
    Row("Request waiting timeout reached.", K.TIMED_OUT, "waiting"),
    Row("Request running timeout reached.", K.TIMED_OUT, "running"),
    Row("The request queue is full.", K.REJECTED, "queue_full"),
    Row("Metadata corruption detected - bootstrap_room mismatch", K.METADATA_MISMATCH, "bootstrap_room"),
    Row("Aborted", K.ABORTED),
    Row("a reason nobody has seen", K.ABORTED),
)  # fmt: skip

NOT_EVENTS = (
    "Successfully reset prefix cache",
    "Failed to reset prefix cache because it is cold",
    "Added request cmpl-a-0-aca2eda5.",
    "Request cmpl-a-0 aborted. Not",
    "Request cmpl-a-0 was aborted",
    "Request cmpl-a-0 details: prompt: 'Request x aborted.', prompt_token_ids: [1]",
    "Received request cmpl-a-0: prompt: 'KV checksum mismatch req=a bootstrap_room=1'",
    "create_error_response called with EngineError: something",
    "This model's maximum context length is 512 tokens. However, your prompt contains 560 input tokens",
    "max_tokens=5000 cannot be greater than max_model_len=512.",
    "Exception caught. Request id: None",
    "Engine 000: Avg prompt throughput: 494.9 tokens/s, Running: 0 reqs, Waiting: 0 reqs, CPU KV cache usage: 0.0%",
    "CPU KV cache size: 1,536 tokens, Maximum concurrency for 512 tokens per request: 3.00x",
    "Releasing KV blocks for request r-1",
    "Recovered from KV load",
    "Poller timed out",
    "Cache flushed successfully!",
    "KV checksum skipped: prefill layout signature differs",
    "Request length is longer than the KV cache pool size or the max context length. Truncated.",
    "[canary] step=9 protected_tokens=1 sweep_passes=2 violations=0",
    "KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 9",
    "Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0",
    "Decode batch, #running-req: 1, #token: 236, token usage: 0.15",
    "max_total_num_tokens=1536, chunked_prefill_size=4096, context_len=512",
    "SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
    "a pool memory leak detected!",
    "no memory leak detected!",
    "Warning: available_size=35244, max_total_num_token=42308",
    "Aborted all",
    "Decode transfer done for request rank=1",
    "Requests timed out after 300.0s",
    "",
)  # fmt: skip
"""Near misses: what engines say while all is well, quotes of events, and events cut short."""
