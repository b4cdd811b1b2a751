"""Writes sample requests as the log of an SGLang 0.5.23 server: level-3 request log in JSON.

The server ran with --log-requests --log-requests-level 3 --log-requests-format json,
--enable-metrics and SGLANG_LOG_REQUEST_HEADERS=x-request-id,x-tenant-id behind a gateway that
sets both headers and the rid.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from detector.sample.log_time import TimedLine, instant, running, write_lines
from detector.sample.tokenizer import IM_END, Tokenizer
from detector.sample.traffic import SampleRequest

HEALTH_EVERY_S = 30.0
BATCH_LINE_EVERY_S = 10.0

_SAMPLING = {
    "temperature": 0.7,
    "max_new_tokens": 900,
    "min_new_tokens": 0,
    "stop": None,
    "stop_token_ids": None,
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "n": 1,
    "ignore_eos": False,
    "skip_special_tokens": True,
}


def write_sglang_log(
    path: Path, requests: Sequence[SampleRequest], *, epoch_s: float, tokenizer: Tokenizer
) -> None:
    """Write the log of one engine that served `requests`; traffic time 0 is `epoch_s`, in UTC."""
    lines = [line for one in requests for line in _request_lines(one, epoch_s, tokenizer)]
    write_lines(path, [*_noise(requests, epoch_s), *lines])


def _request_lines(
    request: SampleRequest, epoch_s: float, tokenizer: Tokenizer
) -> Iterator[TimedLine]:
    rid, at, end = request.request_id, request.ts, request.ts_end
    headers = {"x-request-id": rid, "x-tenant-id": request.tenant}
    obj = _generate_request(rid, request.prompt_ids, session=request.session)
    yield at, _event("request.received", rid, {"obj": obj, "headers": headers}, at, epoch_s)
    obj = obj | {"text": tokenizer.decode(request.prompt_ids)}
    out = {
        "text": tokenizer.decode(number for number in request.response_ids if number != IM_END),
        "output_ids": request.response_ids,
        "meta_info": _meta_info(request, epoch_s),
    }
    done = {"obj": obj, "headers": headers, "out": out}
    yield end, _event("request.finished", rid, done, end, epoch_s)
    port = 40_000 + int(rid[-4:], 16) % 20_000
    access = f'INFO:     10.42.0.7:{port} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
    yield end, f"[{instant(epoch_s, end):%Y-%m-%d %H:%M:%S}] {access}"


def _generate_request(
    rid: str, prompt_ids: Sequence[int], *, session: str | None
) -> dict[str, Any]:
    """Return the GenerateReqInput fields a reader may look at, and some it must pass over."""
    return {
        "rid": rid,
        "session_id": session,
        "text": None,
        "input_ids": prompt_ids,
        "input_embeds": None,
        "image_data": None,
        "sampling_params": _SAMPLING,
        "return_logprob": False,
        "logprob_start_len": -1,
        "top_logprobs_num": 0,
        "stream": False,
        "log_metrics": True,
        "modalities": None,
        "session_params": None,
        "lora_path": None,
        "bootstrap_host": None,
        "routed_dp_rank": None,
        "routing_key": None,
        "conversation_id": None,
        "priority": None,
        "extra_key": None,
        "no_logs": False,
        "custom_labels": None,
        "return_prompt_token_ids": False,
        "cache_salt": None,
        "kv_hints": None,
    }


def _meta_info(request: SampleRequest, epoch_s: float) -> dict[str, Any]:
    count = len(request.response_ids)
    stopped = {"type": "stop", "matched": IM_END}
    return {
        "id": request.request_id,
        "finish_reason": stopped
        if request.finish_reason == "stop"
        else {"type": "length", "length": count},
        "prompt_tokens": len(request.prompt_ids),
        "weight_version": "default",
        "num_retractions": 0,
        "completion_tokens": count,
        "cached_tokens": 0,
        "cached_tokens_details": None,
        "dp_rank": None,
        "e2e_latency": round(request.ts_end - request.ts, 3),
        "request_received_ts": round(epoch_s + request.ts, 3),
        "first_token_latency": round(request.ts_first - request.ts, 3),
        "request_finished_ts": round(epoch_s + request.ts_end, 3),
    }


def _event(name: str, rid: str, fields: dict[str, Any], at_s: float, epoch_s: float) -> str:
    time = instant(epoch_s, at_s)
    stamp = time.replace(tzinfo=None).isoformat(timespec="microseconds")
    record = {"timestamp": stamp, "event": name, "rid": rid, **fields}
    return f"[{time:%Y-%m-%d %H:%M:%S}] {json.dumps(record, ensure_ascii=False)}"


def _noise(requests: Sequence[SampleRequest], epoch_s: float) -> Iterator[TimedLine]:
    """Health probes, which SGLang logs as requests of one token, and the decoder's own lines."""
    spans = [(request.ts, request.ts_end) for request in requests]
    last = max((end for _, end in spans), default=0.0)
    for step in range(int(last / HEALTH_EVERY_S) + 1):
        at = step * HEALTH_EVERY_S
        rid = f"HEALTH_CHECK_{step:032x}"
        obj = _generate_request(rid, (0,), session=None)
        yield at, _event("request.received", rid, {"obj": obj}, at, epoch_s)
    for step in range(1, int(last / BATCH_LINE_EVERY_S) + 1):
        at = step * BATCH_LINE_EVERY_S
        count = running(spans, at)
        yield (
            at,
            f"[{instant(epoch_s, at):%Y-%m-%d %H:%M:%S}] Decode batch, #running-req: {count}, "
            f"#token: {count * 400}, token usage: {min(0.99, 0.015 * count):.2f}, "
            f"cuda graph: True, gen throughput (token/s): {count * 45:.2f}, #queue-req: 0",
        )
