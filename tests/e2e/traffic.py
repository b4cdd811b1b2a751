"""Small traffic with one bleed in every pair of requests, as each of the formats that are read."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any, cast

from detector.model import EngineId, RequestId, TenantId
from detector.sample.scenario import DEMO_EPOCH_S
from detector.sample.sglang_writer import write_sglang_log
from detector.sample.tokenizer import Tokenizer
from detector.sample.traffic import SampleRequest
from detector.sample.vllm_writer import write_vllm_log

IM_START, IM_END, NEWLINE = 151644, 151645, 198
USER, ASSISTANT = 872, 77091

BLED_TOKENS = 32
PAIR_EVERY_S = 5.0
TENANT_RULES = (
    {"kind": "field", "name": "tenant"},
    {"kind": "header", "name": "x-tenant-id"},
    {"kind": "field", "name": "user"},
)
EPOCH_S = DEMO_EPOCH_S


class Spoken:
    """Stands for a tokenizer: all ids mean one text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def decode(self, _ids: object) -> str:
        """Return the text."""
        return self._text


def pairs(
    count: int, *, seed: int = 3, content: Sequence[int] | None = None
) -> list[SampleRequest]:
    """Return `count` pairs: acme asks, and globex's answer repeats acme's words.

    `content` is what bleeds; without it every pair has ids of its own.
    """
    random = Random(seed)
    made = []
    for number in range(count):
        start = number * PAIR_EVERY_S
        bled = list(content or _ids(random, BLED_TOKENS))
        ask, answer = [*_ids(random, 12), *bled, *_ids(random, 8)], _ids(random, 40)
        made.append(_request(random, start, "acme", ask, answer))
        answer = [*_ids(random, 9), *bled, *_ids(random, 9)]
        made.append(_request(random, start + 2, "globex", _ids(random, 50), answer))
    return made


def write_jsonl(path: Path, requests: Sequence[SampleRequest], text: str = "") -> Path:
    """Write our own form; `text` stands in fields that are not read."""
    path.write_text("".join(f"{json.dumps(row(one, text))}\n" for one in requests))
    return path


def write_vllm(path: Path, requests: Sequence[SampleRequest], text: str = "words") -> Path:
    """Write a vLLM log."""
    tokenizer = cast(Tokenizer, Spoken(text))
    write_vllm_log(path, requests, epoch_s=EPOCH_S, tokenizer=tokenizer)
    return path


def write_sglang(path: Path, requests: Sequence[SampleRequest], text: str = "words") -> Path:
    """Write an SGLang log."""
    tokenizer = cast(Tokenizer, Spoken(text))
    write_sglang_log(path, requests, epoch_s=EPOCH_S, tokenizer=tokenizer)
    return path


WRITERS: dict[str, Callable[..., Path]] = {
    "jsonl": write_jsonl,
    "vllm": write_vllm,
    "sglang": write_sglang,
}


def write_config(path: Path, **more: Any) -> Path:
    """Write a configuration whose rules find the tenant in every format."""
    path.write_text(json.dumps({"tenancy": {"rules": TENANT_RULES}, **more}))
    return path


def row(request: SampleRequest, text: str = "") -> dict[str, Any]:
    """Return the line of one request in our own form."""
    names = ("request_id", "ts", "ts_end", "node", "tenant", "model", "session")
    return {
        **{name: getattr(request, name) for name in names},
        "prompt": text,
        "messages": [{"role": "user", "content": text}],
        "prompt_ids": list(request.prompt_ids),
        "response": text,
        "response_ids": list(request.response_ids),
    }


def _request(
    random: Random, start: float, tenant: str, ask: list[int], answer: list[int]
) -> SampleRequest:
    name = f"req-{random.getrandbits(64):016x}"
    prompt = [IM_START, USER, NEWLINE, *ask, IM_END, NEWLINE, IM_START, ASSISTANT, NEWLINE]
    return SampleRequest(
        request_id=RequestId(name),
        ts=start,
        ts_first=start + 0.5,
        ts_end=start + 1.5,
        node=EngineId("engine-0"),
        tenant=TenantId(tenant),
        model="small",
        session=f"s-{name}",
        finish_reason="stop",
        prompt_ids=tuple(prompt),
        response_ids=(*answer, IM_END),
    )


def _ids(random: Random, count: int) -> list[int]:
    return [random.randrange(1_000, 150_000) for _ in range(count)]
