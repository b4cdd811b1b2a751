"""What a simulated engine tells at /metrics, in the names and labels of vLLM and SGLang."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.fakes.cluster.pool import PAGE_TOKENS


@dataclass(slots=True, kw_only=True)
class EngineFigures:
    """The state of an engine at one scrape; `counters` by the engine's own name, without prefix."""

    model: str
    pool_tokens: int
    context_tokens: int
    used_tokens: int
    evictable_tokens: int
    running: int
    queued: int
    in_transfer: int = 0
    running_tokens: int
    prompt_tokens: int
    requests: int
    counters: Mapping[str, int] = field(default_factory=dict)


def vllm_metrics(now: EngineFigures) -> str:
    """Return the page of a vLLM 0.33: one block, the null block, is never handed out."""
    labels = f'engine="0",model_name="{now.model}"'
    blocks = now.pool_tokens // PAGE_TOKENS
    lines = _lines("vllm", labels, _vllm_gauges(now), kind="gauge")
    totals = {"prompt_tokens_total": now.prompt_tokens, "request_success_total": now.requests}
    lines += _lines("vllm", labels, totals | dict(now.counters), kind="counter")
    config = (
        f'block_size="{PAGE_TOKENS}",enable_prefix_caching="True",engine="0",'
        f'num_gpu_blocks="{blocks + 1}",prefix_caching_hash_algo="sha256"'
    )
    lines += ["# TYPE vllm:cache_config_info gauge", f"vllm:cache_config_info{{{config}}} 1.0"]
    return "\n".join(lines) + "\n"


def sglang_metrics(now: EngineFigures) -> str:
    """Return the page of an SGLang 0.5.23 started with --enable-metrics."""
    labels = (
        f'engine_type="unified",model_name="{now.model}",moe_ep_rank="0",pp_rank="0",tp_rank="0"'
    )
    usage = now.used_tokens / now.pool_tokens
    gauges = {
        "num_running_reqs": now.running,
        "num_queue_reqs": now.queued,
        "num_grammar_queue_reqs": 0,
        "num_prefill_bootstrap_queue_reqs": 0,
        "num_prefill_inflight_queue_reqs": 0,
        "num_decode_prealloc_queue_reqs": 0,
        "num_decode_transfer_queue_reqs": now.in_transfer,
        "num_decode_deferred_kv_release_reqs": 0,
        "token_usage": round(usage, 2),
        "full_token_usage": usage,
        "num_used_tokens": now.used_tokens,
        "kv_used_tokens": now.used_tokens,
        "kv_evictable_tokens": now.evictable_tokens,
        "kv_available_tokens": now.pool_tokens - now.used_tokens - now.evictable_tokens,
        "decode_sum_seq_lens": now.running_tokens,
        "max_total_num_tokens": now.pool_tokens,
        "page_size": PAGE_TOKENS,
        "context_len": now.context_tokens,
    }
    lines = _lines("sglang", labels, gauges, kind="gauge")
    totals = {"num_requests_total": now.requests, "prompt_tokens_total": now.prompt_tokens}
    lines += _lines("sglang", labels, totals | dict(now.counters), kind="counter")
    return "\n".join(lines) + "\n"


def _vllm_gauges(now: EngineFigures) -> dict[str, float]:
    return {
        "num_requests_running": now.running,
        "num_requests_waiting": now.queued,
        "kv_cache_usage_perc": now.used_tokens / now.pool_tokens,
    }


def _lines(prefix: str, labels: str, values: Mapping[str, float], *, kind: str) -> list[str]:
    lines = []
    for name, value in values.items():
        lines.append(f"# TYPE {prefix}:{name} {kind}")
        lines.append(f"{prefix}:{name}{{{labels}}} {float(value)!r}")
    return lines
