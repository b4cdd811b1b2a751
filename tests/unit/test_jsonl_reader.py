"""The JSON-lines reader: our form, mapped forms, and every kind of bad record counted by line."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from ingest.coverage import Coverage
from ingest.sources.base import Loss, RawRequest
from ingest.sources.field_map import FieldMap
from ingest.sources.jsonl import JsonlLog

GOOD: dict[str, Any] = {
    "request_id": "req-1",
    "ts": 0.052,
    "ts_end": 63.839,
    "node": "engine-1",
    "tenant": "acme",
    "model": "m",
    "session": "s0",
    "finish_reason": "stop",
    "prompt_ids": [1, 2, 3],
    "response_ids": [4, 5],
}


def _read(
    *lines: bytes | dict[str, Any], fields: FieldMap | None = None, engine: str | None = None
) -> tuple[list[RawRequest], Coverage]:
    coverage = Coverage()
    packed = [line if isinstance(line, bytes) else msgspec.json.encode(line) for line in lines]
    log = JsonlLog(enumerate(packed, 1), engine=engine, coverage=coverage, fields=fields)
    return list(log), coverage


def _one(
    line: bytes | dict[str, Any], fields: FieldMap | None = None, engine: str | None = None
) -> RawRequest:
    requests, coverage = _read(line, fields=fields, engine=engine)
    assert not coverage.broken_by_reason
    return requests[0]


def test_a_whole_record_is_read() -> None:
    request = _one(
        GOOD
        | {
            "account": "group",
            "end_user": 17,
            "parent_id": "req-0",
            "status": 200,
            "gateway_cache_hit": True,
            "reported_prompt_tokens": 3,
            "headers": {"X-Tenant-Id": "acme-h"},
            "cache_salt": "salt",
            "unknown": {"deep": [1]},
        }
    )
    assert (request.request_id, request.started_at_ms, request.ended_at_ms) == ("req-1", 52, 63_839)
    assert (request.engine, request.kv_pool, request.model) == ("engine-1", "engine-1", "m")
    assert (request.prompt_ids, request.response_ids) == ([1, 2, 3], [4, 5])
    assert (request.account, request.end_user, request.parent_id) == ("group", "17", "req-0")
    assert (request.status, request.reported_prompt_tokens) == (200, 3)
    assert request.gateway_cache_hit
    assert request.prompt_loss is request.response_loss is None
    assert request.identity == {
        "tenant": "acme",
        "account": "group",
        "user": "17",
        "session_id": "s0",
        "cache_salt": "salt",
        "node": "engine-1",
        "model": "m",
        "header:x-tenant-id": "acme-h",
    }


def test_the_form_of_history_lines_is_read_and_engine_fills_in() -> None:
    line = {"request_id": 5, "ts": -100.0004, "tenant": "t", "prompt_ids": [], "response_ids": []}
    request = _one(line, engine="e")
    assert (request.request_id, request.started_at_ms, request.ended_at_ms) == ("5", -100_000, None)
    assert (request.engine, request.kv_pool) == ("e", "e")
    assert (request.prompt_ids, request.response_ids) == ([], [])
    assert _one(line).engine is None


def test_engine_and_pool_may_differ() -> None:
    request = _one(GOOD | {"engine": "e", "kv_pool": "p"})
    assert (request.engine, request.kv_pool) == ("e", "p")
    assert _one(GOOD, engine="other").engine == "engine-1"


def test_missing_ids_are_a_loss_and_not_a_broken_record() -> None:
    requests, coverage = _read({"request_id": "r", "ts": 1})
    assert requests[0].prompt_loss is requests[0].response_loss is Loss.NOT_LOGGED
    assert coverage.requests == 1
    assert coverage.prompts.incomplete == {Loss.NOT_LOGGED: 1}


BAD: list[tuple[str, bytes | dict[str, Any]]] = [
    ("not_json", b"{"),
    ("not_json", b"nonsense"),
    ("not_json", b'{"request_id": "\xff\xfe", "ts": 1}'),
    ("not_json", b'{"request_id": "r", "ts": NaN}'),
    ("not_json", b'{"request_id": "r", "ts": Infinity}'),
    ("not_json", b"\x00" * 100),
    ("too_deep", b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    ("wrong_type", b"[1]"),
    ("wrong_type", b"17"),
    ("wrong_type", b'{"request_id": "r", "ts": 1e999}'),
    ("wrong_type", {"request_id": "r", "ts": "noon"}),
    ("wrong_type", {"request_id": ["r"], "ts": 1}),
    ("wrong_type", {"request_id": True, "ts": 1}),
    ("wrong_type", GOOD | {"prompt_ids": "1 2 3"}),
    ("wrong_type", GOOD | {"prompt_ids": [1, 2.5]}),
    ("wrong_type", GOOD | {"prompt_ids": [1, None]}),
    ("wrong_type", GOOD | {"prompt_ids": [True]}),
    ("wrong_type", GOOD | {"prompt_ids": [["nested"]]}),
    ("wrong_type", GOOD | {"status": "200"}),
    ("wrong_type", GOOD | {"headers": ["x"]}),
    ("wrong_type", b'{"request_id": "r", "ts": 1, "prompt_ids": [' + b"9" * 5000 + b"]}"),
    ("missing_field", {}),
    ("missing_field", {"ts": 1}),
    ("missing_field", {"request_id": "", "ts": 1}),
    ("missing_field", {"request_id": "r"}),
    ("missing_field", {"request_id": 10**40, "ts": 1}),
    ("time_range", {"request_id": "r", "ts": 1e300}),
    ("time_range", {"request_id": "r", "ts": -1e300}),
    ("time_range", {"request_id": "r", "ts": 1, "ts_end": 1e308}),
    ("time_range", {"request_id": "r", "ts": 10**30}),
]


@pytest.mark.parametrize(("reason", "line"), BAD)
def test_a_bad_record_is_counted_with_its_line_and_the_next_is_read(
    reason: str, line: bytes | dict[str, Any]
) -> None:
    requests, coverage = _read(b"", line, b"  ", GOOD)
    assert [request.request_id for request in requests] == ["req-1"]
    assert coverage.broken_by_reason == {reason: 1}
    assert coverage.broken_samples[0].line == 2
    assert coverage.requests == 1


@pytest.mark.parametrize("ids", [[-1], [2**31 + 1], [2**63], [2**64 + 1], [10**40]])
def test_ids_out_of_range_pass_to_the_door_which_refuses_them(ids: list[int]) -> None:
    line = b'{"request_id": "r", "ts": 1, "prompt_ids": [%d]}' % ids[0]
    assert _one(line).prompt_ids == ids


def test_duplicate_ids_are_two_requests() -> None:
    requests, _ = _read(GOOD, GOOD)
    assert len(requests) == 2


def test_two_million_tokens_on_one_line_are_read() -> None:
    line = b'{"request_id": "r", "ts": 1, "response_ids": [' + b"151645," * 1_999_999 + b"7]}"
    ids = _one(line).response_ids
    assert ids is not None
    assert len(ids) == 2_000_000


MAPPED = {
    "meta": {"id": "call-7", "user": {"key_hash": "ab12"}},
    "gen_ai.request.model": "qwen",
    "start": "2026-11-29T18:00:21.500Z",
    "end": "2026-11-29T19:00:22+01:00",
    "backend": {"host.name": "vllm-0"},
    "request": {"token_ids": [1, 2]},
    "response": {"choices": [{"token_ids": [3]}], "usage": {"prompt_tokens": 2}},
    "labels": {"team": "red", "n": 4, "bad": [1]},
}

FIELDS = FieldMap(
    time="rfc3339",
    request_id="meta.id",
    ts="start",
    ts_end="end",
    node="backend.host.name",
    model="gen_ai.request.model",
    api_key_hash="meta.user.key_hash",
    prompt_ids="request.token_ids",
    response_ids="response.choices.0.token_ids",
    reported_prompt_tokens="response.usage.prompt_tokens",
    identity={"Team": "labels.team", "n": "labels.n", "bad": "labels.bad", "no": "labels.no"},
)


def test_a_foreign_log_is_read_through_a_field_map() -> None:
    request = _one(MAPPED, fields=FIELDS)
    assert request.request_id == "call-7"
    assert request.started_at_ms == 1_795_975_221_500
    assert request.ended_at_ms == 1_795_975_222_000
    assert (request.engine, request.model) == ("vllm-0", "qwen")
    assert (request.prompt_ids, request.response_ids) == ([1, 2], [3])
    assert request.reported_prompt_tokens == 2
    assert request.identity == {
        "api_key_hash": "ab12",
        "node": "vllm-0",
        "model": "qwen",
        "team": "red",
        "n": "4",
    }


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("wrong_type", {"start": "noon"}),
        ("wrong_type", {"start": 17}),
        ("wrong_type", {"request": {"token_ids": [1.5]}}),
        ("missing_field", {"meta": "flat"}),
        ("missing_field", {"start": None}),
    ],
)
def test_bad_records_of_a_mapped_log_are_counted(reason: str, change: dict[str, Any]) -> None:
    requests, coverage = _read(MAPPED | change, b"[]", MAPPED, fields=FIELDS)
    assert len(requests) == 1
    assert coverage.broken_by_reason[reason] >= 1
    assert sum(coverage.broken_by_reason.values()) == 2


@pytest.mark.parametrize(
    ("unit", "value"),
    [("s", 1.5), ("ms", 1500), ("us", 1_500_000), ("ns", 1_500_000_000), ("rfc3339", None)],
)
def test_time_units(unit: Any, value: float | None) -> None:
    moment: object = value if value is not None else "1970-01-01 00:00:01.5"
    request = _one({"request_id": "r", "ts": moment}, fields=FieldMap(time=unit))
    assert request.started_at_ms == 1500


def test_an_empty_map_reads_our_own_form() -> None:
    assert FieldMap(time="ms").is_own_form
    assert not FieldMap(ts="time").is_own_form
    assert _one(GOOD, fields=FieldMap()) == _one(GOOD)
    assert _one(GOOD, fields=FieldMap(session="no.such.field")).session is None


def test_unknown_fields_of_a_map_are_errors() -> None:
    build: Callable[..., FieldMap] = FieldMap
    with pytest.raises(ValidationError):
        build(request="id")


def test_a_repr_shows_no_ids() -> None:
    assert "987654" not in repr(_one(GOOD | {"prompt_ids": [987_654]}))
