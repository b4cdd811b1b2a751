"""The readers on genuine engine logs: the README's counts, and never a false "complete"."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ingest.coverage import Coverage
from ingest.sources.base import Loss, RawRequest
from ingest.sources.sglang import SglangLog
from ingest.sources.vllm import VllmLog

RUN_A = ("vllm/a-debug-text/server.log.zst", "vllm/a-debug-text/requests.jsonl.zst")
RUN_C = (
    "vllm/c-json-dictconfig/runC_requests_json.log.zst",
    "vllm/c-json-dictconfig/requests.jsonl.zst",
)
ABSENT = (400, 404)
SGLANG_LOGS = ["sglang/a-level3-json/reqlog/vm_0.log.zst", "sglang/a-level3-json/server.log.zst"]
SGLANG_CLIENT = "sglang/a-level3-json/requests.jsonl.zst"


def lines(name: str) -> Iterator[tuple[int, bytes]]:
    """Yield the numbered lines of one captured file."""
    path = Path(os.environ["BLEEDWATCH_EVAL_DATA"]) / "engine-logs" / name
    data = subprocess.run(["zstd", "-dcf", str(path)], capture_output=True, check=True).stdout
    yield from enumerate(data.splitlines(), start=1)


@dataclass
class ClientRecord:
    """What the client saw of one request; None where it could not see it."""

    engine_id: str
    chat: bool
    stream: bool
    kind: str
    status: int | None
    prompt_ids: list[int] | None
    response_ids: list[int] | None
    completion_tokens: int | None


def client_records(name: str) -> list[ClientRecord]:
    """Read a requests.jsonl of a vLLM or SGLang run."""
    return [_record(json.loads(raw)) for _, raw in lines(name)]


def _record(truth: dict[str, Any]) -> ClientRecord:
    chat = "chat" in truth["path"]
    answer = truth.get("resp") if "error" not in (truth.get("resp") or {}) else None
    chunks = [answer] if isinstance(answer, dict) else truth.get("chunks") or []
    prompt: list[int] | None = None
    response: list[int] | None = None
    counted: int | None = None
    engine_id = None
    for chunk in chunks:
        engine_id = engine_id or chunk.get("id") or (chunk.get("meta_info") or {}).get("id")
        prompt = prompt or chunk.get("prompt_token_ids")
        counted = (chunk.get("usage") or {}).get("completion_tokens", counted)
        response = chunk.get("output_ids") or response  # /generate: all ids so far, every time
        for choice in chunk.get("choices") or []:
            prompt = prompt or choice.get("prompt_token_ids")
            if choice.get("token_ids") is not None:
                response = (response or []) + choice["token_ids"]
    header = truth.get("x_request_id") or ""
    return ClientRecord(
        engine_id=engine_id or ("chatcmpl-" if chat else "cmpl-") + header,
        chat=chat,
        stream=bool(truth["body"].get("stream")),
        kind=truth["kind"],
        status=truth.get("status"),
        prompt_ids=prompt,
        response_ids=response,
        completion_tokens=counted,
    )


def read_vllm(name: str) -> tuple[list[RawRequest], Coverage]:
    coverage = Coverage()
    return list(VllmLog(lines(name), engine="e1", coverage=coverage, year=2026)), coverage


def paired(run: tuple[str, str]) -> list[tuple[ClientRecord, RawRequest | None]]:
    by_call = {(one.parent_id or one.request_id): one for one in read_vllm(run[0])[0]}
    return [(truth, by_call.get(truth.engine_id)) for truth in client_records(run[1])]


def test_run_a_has_every_request_once_more_than_its_ids() -> None:
    requests, coverage = read_vllm(RUN_A[0])
    ids = Counter(one.request_id for one in requests)
    assert len(ids) == 187
    assert [name for name, count in ids.items() if count > 1] == ["cmpl-dup-1-0"]
    assert coverage.requests == len(requests) == 188
    assert coverage.prompts.complete == 188
    assert coverage.responses.none_expected == 1
    assert not coverage.broken_by_reason


@pytest.mark.parametrize("run", [RUN_A, RUN_C])
def test_prompts_equal_the_clients(run: tuple[str, str]) -> None:
    pairs = [(truth, one) for truth, one in paired(run) if one is not None]
    known = [(truth, one) for truth, one in pairs if truth.prompt_ids is not None]
    assert all(truth.prompt_ids == one.prompt_ids for truth, one in known)
    assert len(known) == {RUN_A: 178, RUN_C: 53}[run]


@pytest.mark.parametrize("run", [RUN_A, RUN_C])
def test_no_request_is_invented_and_none_lost(run: tuple[str, str]) -> None:
    for truth, one in paired(run):
        assert (one is None) == (truth.status in ABSENT)


def test_run_a_has_the_outputs_that_the_log_has() -> None:
    seen: Counter[tuple[str, str]] = Counter()
    for truth, one in paired(RUN_A):
        if one is None or truth.kind == "clienttimeout":
            continue
        kind = "aborted" if truth.kind == "abort" else "stream" if truth.stream else "plain"
        kind = kind if truth.chat or kind == "aborted" else "completion"
        held = "none" if one.response_ids is None else "lossy"
        seen[kind, "exact" if one.response_ids == truth.response_ids else held] += 1
    assert seen == {
        ("plain", "exact"): 33,
        ("plain", "none"): 9,
        ("stream", "exact"): 23,
        ("stream", "lossy"): 12,
        ("stream", "none"): 4,
        ("completion", "none"): 81,
        ("aborted", "exact"): 6,
        ("aborted", "lossy"): 2,
        ("aborted", "none"): 8,
    }


@pytest.mark.parametrize("run", [RUN_A, RUN_C])
def test_complete_means_equal_to_what_the_client_got(run: tuple[str, str]) -> None:
    claimed = [pair for pair in paired(run) if pair[1] is not None and pair[1].response_ids]
    whole = [(truth, one) for truth, one in claimed if one and one.response_loss is None]
    assert all(truth.response_ids == one.response_ids for truth, one in whole if one)
    assert len(whole) == {RUN_A: 56, RUN_C: 15}[run]


def test_losses_are_counted_by_cause() -> None:
    _, coverage = read_vllm(RUN_A[0])
    assert coverage.responses.incomplete == {
        Loss.NOT_LOGGED: 92,
        Loss.DELTAS_LOST: 16,
        Loss.NEVER_FINISHED: 14,
        Loss.NO_OUTPUT_LINE: 9,
    }
    assert any("tap" in row.fix for row in coverage.losses())


def test_json_log_has_55_requests_with_millisecond_times() -> None:
    requests, coverage = read_vllm(RUN_C[0])
    assert len(requests) == coverage.prompts.complete == 55
    assert any(one.started_at_ms % 1000 for one in requests)


def test_bodies_without_header_give_their_hints() -> None:
    requests, _ = read_vllm(RUN_A[0])
    hinted = [one for one in requests if "user" in one.identity]
    assert len(hinted) == 38
    assert all(one.end_user == one.identity["user"] for one in hinted)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("vllm/e-fault-leak/runE_leak_server.log.zst", 92),
        ("vllm/h-session-reuse-events/runH_server.log", 5),
        ("vllm/c-json-dictconfig/runC_json_server.log", 0),
    ],
)
def test_logs_without_ids_say_so(name: str, count: int) -> None:
    requests, coverage = read_vllm(name)
    assert len(requests) == count
    assert coverage.prompts.complete == coverage.responses.complete == 0
    assert coverage.prompts.incomplete.get(Loss.NOT_LOGGED, 0) == count


def read_sglang(name: str) -> tuple[list[RawRequest], Coverage]:
    coverage = Coverage()
    return list(SglangLog(lines(name), engine="e1", coverage=coverage)), coverage


@pytest.mark.parametrize("name", SGLANG_LOGS)
def test_finished_requests_are_complete(name: str) -> None:
    requests, coverage = read_sglang(name)
    finished = [one for one in requests if one.response_ids is not None]
    assert len(finished) == coverage.responses.complete == 156
    assert all(one.prompt_loss is None and one.prompt_ids for one in finished)
    assert all(one.reported_prompt_tokens == len(one.prompt_ids or ()) for one in finished)
    assert coverage.ignored_by_reason == {"health_check": 2}
    assert not coverage.broken_by_reason


@pytest.mark.parametrize("name", SGLANG_LOGS)
def test_the_rest_never_finished(name: str) -> None:
    _, coverage = read_sglang(name)
    assert coverage.responses.incomplete == {Loss.NEVER_FINISHED: 46}
    assert coverage.prompts.incomplete == {Loss.TEXT_ONLY: 13}


def test_both_files_say_the_same() -> None:
    first, second = (read_sglang(name)[0] for name in SGLANG_LOGS)
    assert [(one.request_id, one.response_ids) for one in first] == [
        (one.request_id, one.response_ids) for one in second
    ]


def test_ids_equal_the_clients_and_none_is_invented() -> None:
    by_id = {one.request_id: one for one in read_sglang(SGLANG_LOGS[0])[0]}
    compared = counted = 0
    for truth in client_records(SGLANG_CLIENT):
        one = by_id.get(truth.engine_id)
        if truth.status != 200 or one is None or one.response_ids is None:
            continue
        if truth.prompt_ids is not None:
            assert truth.prompt_ids == one.prompt_ids
        if truth.response_ids is not None:
            assert truth.response_ids == one.response_ids
            compared += 1
        elif truth.completion_tokens is not None:
            assert truth.completion_tokens == len(one.response_ids)
            counted += 1
    assert compared + counted == 155
    assert counted == 79  # chat: the client got no ids, only their number


def test_tenants_show_in_every_form() -> None:
    requests, _ = read_sglang(SGLANG_LOGS[0])
    assert all(
        "header:x-tenant-id" in one.identity for one in requests if "probe" not in one.request_id
    )
    assert any("label:tenant" in one.identity for one in requests)
    assert any(one.end_user for one in requests)


def test_stamps_beat_line_times() -> None:
    requests, _ = read_sglang(SGLANG_LOGS[0])
    finished = [one for one in requests if one.response_ids is not None]
    assert all(one.ended_at_ms and one.started_at_ms <= one.ended_at_ms for one in finished)


@pytest.mark.parametrize("form", ["json", "text"])
@pytest.mark.parametrize(
    ("level", "tokens", "held", "loss"),
    [
        (0, 6, None, Loss.NOT_LOGGED),
        (1, 3000, None, Loss.NOT_LOGGED),
        (2, 6, 6, None),
        (2, 3000, 1024, Loss.TRUNCATED),
        (3, 6, 6, None),
        (3, 3000, 3000, None),
    ],
)
def test_every_level_and_format(
    form: str, level: int, tokens: int, held: int | None, loss: Loss | None
) -> None:
    requests, _ = read_sglang(f"sglang/isolated-logger/level{level}_{form}_{tokens}tok.log")
    (one,) = requests
    assert one.prompt_loss == one.response_loss == loss
    assert [ids and len(ids) for ids in (one.prompt_ids, one.response_ids)] == [held, held]
    assert one.identity["cache_salt"] == "salt-acme"
    assert one.identity["header:x-tenant-id"] == "acme"


def test_the_faulty_run_reads_as_well() -> None:
    _, coverage = read_sglang("sglang/c-fault-leak/server.log.zst")
    assert coverage.responses.complete == 45
    assert coverage.responses.incomplete == {Loss.NEVER_FINISHED: 15}
