"""Writes sample requests as the text log of a vLLM 0.33 server with request logging at DEBUG.

The server ran with --enable-log-requests --enable-log-outputs and answered chat calls without
streaming; a gateway put the request id, the tenant (as `user`) and the session in each body.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from detector.model import RequestId
from detector.sample.chatml import messages_of
from detector.sample.log_time import TimedLine, instant, running, write_lines
from detector.sample.tokenizer import IM_END, Tokenizer
from detector.sample.traffic import SampleRequest

STATISTICS_EVERY_S = 10.0
_PREFIX = "(APIServer pid=4242)"
_LOGGER = "entrypoints/.../utils/request_logger.py"
_BANNER = "vLLM API server version 0.33.0"
_SAMPLING = (
    "SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, repetition_penalty=1.0, "
    "temperature=0.7, top_p=1.0, top_k=0, min_p=0.0, seed=None, stop=[], stop_token_ids=[], "
    "bad_words=[], include_stop_str_in_output=False, ignore_eos=False, max_tokens=900, "
    "min_tokens=0, logprobs=None, prompt_logprobs=None, skip_special_tokens=True, "
    "spaces_between_special_tokens=True, structured_outputs=None, extra_args=None)"
)

_Logged = tuple[str, str, str]
"""Level, place in the source, and message of one line."""


def write_vllm_log(
    path: Path, requests: Sequence[SampleRequest], *, epoch_s: float, tokenizer: Tokenizer
) -> None:
    """Write the log of one engine that served `requests`; traffic time 0 is `epoch_s`, in UTC.

    Lines stand in the order of time; vLLM's clock shows neither year nor fraction.
    """
    banner = _line("INFO", "entrypoints/utils.py:299", _BANNER, at_s=0.0, epoch_s=epoch_s)
    lines = [line for one in requests for line in _request_lines(one, epoch_s, tokenizer)]
    write_lines(path, [(0.0, banner), *_statistics(requests, epoch_s), *lines])


def engine_id(request_id: RequestId) -> RequestId:
    """Return the id under which vLLM logs a chat request, whose body has `request_id`."""
    return RequestId(f"chatcmpl-{request_id}")


def _request_lines(
    request: SampleRequest, epoch_s: float, tokenizer: Tokenizer
) -> Iterator[TimedLine]:
    for level, place, message in _arrival(request, tokenizer):
        at = request.ts
        yield at, _line(level, place, message, at_s=at, epoch_s=epoch_s)
    end = request.ts_end
    for level, place, message in _answer(request, tokenizer):
        yield end, _line(level, place, message, at_s=end, epoch_s=epoch_s)
    port = 40_000 + int(request.request_id[-4:], 16) % 20_000
    yield end, f'INFO:     10.42.0.7:{port} - "POST /v1/chat/completions HTTP/1.1" 200 OK'


def _arrival(request: SampleRequest, tokenizer: Tokenizer) -> Iterator[_Logged]:
    name = engine_id(request.request_id)
    body = json.dumps(_body(request, tokenizer), ensure_ascii=False, separators=(",", ":"))
    yield "DEBUG", f"{_LOGGER}:88", f"Request {request.request_id} JSON body: {body}"
    details = (
        f"Request {name} details: prompt: {tokenizer.decode(request.prompt_ids)!r}, "
        f"prompt_token_ids: {list(request.prompt_ids)}, prompt_embeds shape: None."
    )
    yield "DEBUG", f"{_LOGGER}:55", details
    received = f"Received request {name}: params: {_SAMPLING}, lora_request: None."
    yield "INFO", f"{_LOGGER}:65", received
    added = f"Added request {name}-{request.request_id[-8:]}."
    yield "INFO", "v1/engine/async_llm.py:578", added


def _answer(request: SampleRequest, tokenizer: Tokenizer) -> Iterator[_Logged]:
    intro = f"Generated response {engine_id(request.request_id)}"
    ids = list(request.response_ids)
    yield "DEBUG", f"{_LOGGER}:115", f"{intro} details: output_token_ids: {ids}"
    text = tokenizer.decode(number for number in ids if number != IM_END)
    ended = f"{intro}: output: {text!r}, finish_reason: {request.finish_reason}"
    yield "INFO", f"{_LOGGER}:122", ended


def _body(request: SampleRequest, tokenizer: Tokenizer) -> dict[str, Any]:
    messages = [
        {"role": str(message.role), "content": tokenizer.decode(message.ids)}
        for message in messages_of(request.prompt_ids)
    ]
    return {
        "messages": messages,
        "model": request.model,
        "max_tokens": 900,
        "temperature": 0.7,
        "user": request.tenant,
        "session_id": request.session,
        "request_id": request.request_id,
    }


def _line(level: str, place: str, message: str, *, at_s: float, epoch_s: float) -> str:
    return f"{_PREFIX} {level} {instant(epoch_s, at_s):%m-%d %H:%M:%S} [{place}] {message}"


def _statistics(requests: Sequence[SampleRequest], epoch_s: float) -> Iterator[TimedLine]:
    """Yield what the engine says about itself every ten seconds, and a probe of its health."""
    spans = [(request.ts, request.ts_end) for request in requests]
    last = max((end for _, end in spans), default=0.0)
    for step in range(1, int(last / STATISTICS_EVERY_S) + 1):
        at = step * STATISTICS_EVERY_S
        ended = [one for one in requests if at - STATISTICS_EVERY_S <= one.ts_end < at]
        prompt = sum(len(one.prompt_ids) for one in ended) / STATISTICS_EVERY_S
        output = sum(len(one.response_ids) for one in ended) / STATISTICS_EVERY_S
        count = running(spans, at)
        message = (
            f"Engine 000: Avg prompt throughput: {prompt:.1f} tokens/s, Avg generation "
            f"throughput: {output:.1f} tokens/s, Running: {count} reqs, Waiting: 0 reqs, "
            f"GPU KV cache usage: {min(99.0, 1.5 * count):.1f}%, Prefix cache hit rate: 21.0%"
        )
        yield at, _line("INFO", "v1/metrics/loggers.py:335", message, at_s=at, epoch_s=epoch_s)
        yield at, 'INFO:     10.42.0.1:50214 - "GET /health HTTP/1.1" 200 OK'
