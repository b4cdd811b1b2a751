"""Lines of a vLLM 0.33 log in JSON, with its request logger at DEBUG."""

import json
from datetime import UTC, datetime

from detector.sample.chatml import messages_of
from tests.fakes.cluster.call import Call
from tests.fakes.cluster.sglang_log import EPOCH_S

_REQUESTS = "vllm.entrypoints.serve.utils.request_logger"
_ENGINE = "vllm.v1.engine.async_llm"
_SERVER = "vllm.entrypoints.openai.api_server"
_NIXL = "vllm.distributed.kv_transfer.kv_connector.v1.nixl.base_worker"


def started(now_s: float) -> str:
    """Return what a server says when it begins to listen."""
    return _line(now_s, "INFO", _SERVER, "Starting vLLM API server 0 on http://0.0.0.0:8000")


def received(call: Call, now_s: float) -> list[str]:
    """Return the lines of a request that has come."""
    body = {
        "messages": [{"role": str(one.role), "content": ""} for one in messages_of(call.prompt)],
        "model": call.model,
        "user": call.tenant,
        "session_id": call.session,
        "cache_salt": f"salt-{call.tenant}",
        "request_id": call.request_id,
    }
    name = engine_id(call)
    return [
        _line(
            now_s, "DEBUG", _REQUESTS, f"Request {call.request_id} JSON body: {json.dumps(body)}"
        ),
        _line(
            now_s,
            "DEBUG",
            _REQUESTS,
            f"Request {name} details: prompt: None, prompt_token_ids: {list(call.prompt)}, "
            "prompt_embeds shape: None.",
        ),
        _line(now_s, "INFO", _ENGINE, f"Added request {name}-{call.request_id[-8:]}."),
    ]


def finished(call: Call, now_s: float) -> list[str]:
    """Return the lines of an answer."""
    intro = f"Generated response {engine_id(call)}"
    return [
        _line(now_s, "DEBUG", _REQUESTS, f"{intro} details: output_token_ids: {call.output}"),
        _line(
            now_s,
            "INFO",
            _REQUESTS,
            f"{intro}: output: 'x', finish_reason: {call.finish_reason}",
        ),
    ]


def aborted(call: Call, now_s: float) -> str:
    """Return what is said when a client has gone away."""
    return _line(now_s, "INFO", _ENGINE, f"Request {engine_id(call)} aborted.")


def lease_expired(call: Call, now_s: float) -> str:
    """Return what a prefill engine says when it gives up waiting for a reader."""
    return _line(
        now_s,
        "WARNING",
        _NIXL,
        f"Releasing expired KV blocks for request {engine_id(call)} which were retrieved by "
        "0 remote worker(s) before lease expired.",
    )


def read_too_late(call: Call, now_s: float) -> str:
    """Return what it says when they are read afterwards."""
    return _line(
        now_s,
        "ERROR",
        _NIXL.replace("base", "pull"),
        f"Potentially invalid KV blocks for unrecognized request {engine_id(call)} were retrieved "
        "by a decode worker. They may have expired.",
    )


def engine_id(call: Call) -> str:
    """Return the id under which vLLM logs a chat request."""
    return f"chatcmpl-{call.request_id}"


def _line(now_s: float, level: str, name: str, message: str) -> str:
    moment = datetime.fromtimestamp(EPOCH_S + now_s, UTC)
    stamp = f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"
    record = {
        "asctime": stamp, "levelname": level, "name": name, "processName": "MainProcess",
        "process": 4242, "message": message, "vllm_process_name": "APIServer",
    }  # fmt: skip
    return json.dumps(record)
