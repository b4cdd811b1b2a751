"""The SGLang reader on small hand-made logs: formats, levels, batches, times, causes of loss."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.coverage import Coverage
from ingest.sources.base import Loss, RawRequest
from ingest.sources.literals import CUT, LiteralError, parse, skip_string
from ingest.sources.sglang import SglangLog

AT = "2026-03-01T10:00:0{}.250000"
AT_MS = 1772359200_250


def read(*lines: str | bytes, **options: int) -> tuple[list[RawRequest], Coverage]:
    coverage = Coverage()
    raw = [line.encode() if isinstance(line, str) else line for line in lines]
    return list(SglangLog(enumerate(raw, 1), engine="e1", coverage=coverage, **options)), coverage


def event(kind: str, obj: dict[str, Any], second: int = 0, **more: Any) -> str:
    record = {"timestamp": AT.format(second), "event": f"request.{kind}", "rid": obj.get("rid")}
    return json.dumps({**record, "obj": obj, **more})


def received(rid: Any = "r1", **fields: Any) -> str:
    return event("received", {"rid": rid, "text": None, "input_ids": [1, 2], **fields})


def finished(rid: Any = "r1", answer: dict[str, Any] | None = None, **fields: Any) -> str:
    obj = {"rid": rid, "text": None, "input_ids": [1, 2], **fields}
    meta = {
        "id": rid,
        "finish_reason": {"type": "stop"},
        "completion_tokens": 2,
        "prompt_tokens": 2,
    }
    out = {"text": "x", "output_ids": [3, 4], "meta_info": meta, **(answer or {})}
    return event("finished", obj, 1, out=out)


def meta(**fields: Any) -> dict[str, Any]:
    return {"meta_info": {"id": "r1", "completion_tokens": 2, **fields}}


@pytest.mark.parametrize("prefix", ["", "[2026-03-01 10:00:00] ", "[2026-03-01 10:00:00 DP0 TP0] "])
def test_json_with_any_prefix(prefix: str) -> None:
    (one,), coverage = read(prefix + received(), prefix + finished())
    assert (one.prompt_ids, one.response_ids) == ([1, 2], [3, 4])
    assert one.prompt_loss is one.response_loss is None
    assert (one.started_at_ms, one.ended_at_ms) == (AT_MS, AT_MS + 1000)
    assert (one.finish_reason, one.reported_prompt_tokens, one.engine) == ("stop", 2, "e1")
    assert coverage.kind == "sglang"


def test_text_format() -> None:
    obj = (
        "obj=GenerateReqInput(rid='r1', text='it\\'s, out={\"output_ids\": [9]}', "
        "input_ids=[1, 2], "
        "sampling_params={'stop': None, 'top_p': 0.5}, modalities=[<M.IMAGE: 1>], cache_salt='s1', "
        "extra_key=None), headers={'X-Tenant-Id': 't1'}"
    )
    out = (
        "out={'text': \"it's\", 'output_ids': [3, 4], 'meta_info': {'id': 'r1', "
        "'finish_reason': {'type': 'length', 'length': 2}, 'completion_tokens': 2}}"
    )
    (one,), coverage = read(
        f"[2026-03-01 10:00:00] Receive: {obj}", f"[2026-03-01 10:00:01] Finish: {obj}, {out}"
    )
    assert (one.prompt_ids, one.response_ids, one.response_loss) == ([1, 2], [3, 4], None)
    assert one.identity == {"cache_salt": "s1", "header:x-tenant-id": "t1"}
    assert (one.started_at_ms, one.ended_at_ms) == (AT_MS - 250, AT_MS - 250 + 1999)
    assert not coverage.broken_by_reason


@pytest.mark.parametrize("form", ["json", "text"])
def test_level_2_keeps_the_head(form: str) -> None:
    line = finished(input_ids=[1, 2, "...", 8], answer={"output_ids": [3, "...", 9]})
    if form == "text":
        line = (
            "[2026-03-01 10:00:00] Finish: obj=GenerateReqInput(rid='r1', text='a' ... 'b', "
            "input_ids=[1, 2] ... [8]), out={'output_ids': [3] ... [9], 'meta_info': {}}"
        )
    (one,), _ = read(line)
    assert (one.prompt_ids, one.prompt_loss) == ([1, 2], Loss.TRUNCATED)
    assert (one.response_ids, one.response_loss) == ([3], Loss.TRUNCATED)


def test_levels_0_and_1_hold_no_ids() -> None:
    (one,), coverage = read(event("finished", {"rid": "r1"}, out=meta()))
    assert one.prompt_loss is one.response_loss is Loss.NOT_LOGGED
    assert all("level to 3" in row.fix for row in coverage.losses())


def test_text_prompts_take_their_ids_from_the_answer() -> None:
    text = {"input_ids": None, "text": "hello"}
    (without,), coverage = read(finished("r1", None, **text))
    (with_ids,), _ = read(finished(answer={"prompt_token_ids": [7, 8]}, **text))
    assert (without.prompt_ids, without.prompt_loss) == (None, Loss.TEXT_ONLY)
    assert (with_ids.prompt_ids, with_ids.prompt_loss) == ([7, 8], None)
    assert "--return-input-ids" in next(coverage.losses()).fix


def test_fewer_ids_than_the_engine_counted_are_lost_deltas() -> None:
    (one,), _ = read(finished(answer=meta(completion_tokens=5)))
    assert (one.response_ids, one.response_loss) == ([3, 4], Loss.DELTAS_LOST)


def test_answers_as_text_only() -> None:
    (one,), _ = read(event("finished", {"rid": "r1"}, out={"text": "x", "meta_info": {}}))
    assert (one.response_ids, one.response_loss) == (None, Loss.TEXT_ONLY)


def test_what_never_finished_says_so() -> None:
    (one,), coverage = read(received())
    assert (one.prompt_ids, one.response_ids, one.ended_at_ms) == ([1, 2], None, None)
    assert coverage.responses.incomplete == {Loss.NEVER_FINISHED: 1}


def test_a_request_whose_client_has_left_is_read_at_once() -> None:
    said = "Request is disconnected from the client side (type 1). Abort request obj.rid='r1'"
    for prefix in ("[2026-03-01 10:00:01] ", "[2026-03-01 10:00:01 TP0] [http_server] Error: "):
        requests, coverage = read(received(), prefix + said, finished("r2"))
        assert [one.request_id for one in requests] == ["r1", "r2"]
        assert coverage.responses.incomplete == {Loss.NEVER_FINISHED: 1}


def test_what_a_client_wrote_ends_no_request() -> None:
    said = "Request is disconnected from the client side (type 1). Abort request obj.rid='r1'"
    requests, _ = read(received(), said, received("r2", text=said), finished("r2"), finished())
    assert [one.request_id for one in requests] == ["r2", "r1"]


def test_an_abort_with_record_keeps_status_and_ids() -> None:
    reason = {"type": "abort", "message": "queue", "status_code": 503}
    (one,), _ = read(finished(answer=meta(finish_reason=reason)))
    assert (one.finish_reason, one.status, one.response_ids) == ("abort", 503, [3, 4])


def test_health_checks_are_ignored() -> None:
    requests, coverage = read(received("HEALTH_CHECK_1"), finished("HEALTH_CHECK_1"))
    assert requests == []
    assert coverage.ignored_by_reason == {"health_check": 1}


def test_tenant_hints() -> None:
    body = event(
        "received.openai",
        {"rid": "r1", "user": "u1", "model": "m1", "messages": []},
        headers={"x-request-id": "q1"},
    )
    hints: dict[str, Any] = {
        "extra_key": "k1",
        "cache_salt": "s1",
        "session_id": "x1",
        "custom_labels": {"Team": "a"},
    }
    line = finished(**hints)
    (one,), _ = read(body, line[:-1] + ', "headers": {"X-Tenant-Id": "t1", "x": null}}')
    assert one.identity == {
        "extra_key": "k1",
        "cache_salt": "s1",
        "session_id": "x1",
        "label:team": "a",
        "header:x-tenant-id": "t1",
        "user": "u1",
    }
    assert (one.model, one.session, one.end_user) == ("m1", "x1", "u1")


def test_an_openai_body_without_rid_is_found_by_its_header() -> None:
    headers = {"x-request-id": "q1"}
    body = event("received.openai", {"user": "u1"}, headers=headers)
    (one,), _ = read(body, finished()[:-1] + f', "headers": {json.dumps(headers)}}}')
    assert one.end_user == "u1"
    assert read(body, finished())[0][0].end_user is None


def test_batches_are_split() -> None:
    batch = received(["r1", "r2"], input_ids=[[1], [2, 3]], cache_salt=["s1", "s2"])
    one, two = read(batch, finished("r1", input_ids=[1]))[0]
    assert (one.request_id, one.prompt_ids, one.response_ids) == ("r1", [1], [3, 4])
    assert (two.request_id, two.prompt_ids, two.parent_id) == ("r2", [2, 3], "r1")
    assert two.response_loss is Loss.NEVER_FINISHED
    assert two.identity == {"cache_salt": "s2"}


def test_parallel_samples_finish_under_their_own_ids() -> None:
    requests, coverage = read(
        received(["a", "b"], sampling_params={"n": 2}), finished("c"), finished("d")
    )
    assert [one.request_id for one in requests] == ["c", "d"]
    assert coverage.ignored_by_reason == {"parallel_samples": 1}


def test_stamps_beat_line_times_and_show_the_zone() -> None:
    began = AT_MS / 1000 - 9 * 3600  # the host's clock is nine hours ahead of UTC
    stamps = meta(request_received_ts=began, request_finished_ts=began + 1)
    one, two = read(received(), finished(answer=stamps), received("r2"))[0]
    assert (one.started_at_ms, one.ended_at_ms) == (int(began * 1000), int(began * 1000) + 1000)
    assert two.started_at_ms == AT_MS - 9 * 3600_000


def test_unfinished_requests_fall_out() -> None:
    later = received("r3").replace("T10", "T13")
    requests, _ = read(received("r1"), received("r2"), received("r3"), max_unfinished=1)
    assert [one.request_id for one in requests] == ["r1", "r2", "r3"]
    requests, _ = read(received("r1"), later, finished("r1").replace("T10", "T13"))
    assert [one.response_ids for one in requests] == [None, [3, 4], None]


def test_a_repeated_id_is_another_request() -> None:
    requests, _ = read(received(), received(), finished())
    assert [one.response_ids for one in requests] == [None, [3, 4]]


def test_broken_records_are_counted_by_line_and_word_only() -> None:
    secret = "swordfish"
    requests, coverage = read(
        received()[:-5],
        f"[2026-03-01 10:00:00] Finish: obj=GenerateReqInput(rid='{secret}",
        event("received", {"rid": None}),
        "[2026-03-01 10:00:00] Prefill batch, #new-seq: 1",
        finished(),
    )
    assert len(requests) == 1
    assert coverage.broken_by_reason == {
        "json_unreadable": 1,
        "text_unreadable": 1,
        "id_unreadable": 1,
    }
    assert [sample.line for sample in coverage.broken_samples] == [1, 2, 3]
    assert secret not in repr(coverage)


def test_coverage_takes_no_free_text_and_counts_unmapped() -> None:
    coverage = Coverage()
    coverage.broken("user said hello", 7)
    coverage.unmapped()
    assert coverage.broken_by_reason == {"other": 1}
    assert coverage.unmapped_tenants == 1


TEXT_LINE = (
    "[2026-03-01 10:00:00] Finish: obj=GenerateReqInput(rid='r1', input_ids=[1, 2], text=\"a'b\", "
    "sampling_params={'n': 1}), out={'output_ids': [3], 'meta_info': {'id': 'r1'}}"
)


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_random_bytes_never_raise(junk: list[bytes]) -> None:
    starts = (b"", b'{"timestamp"', b"[2026-03-01 10:00:00] Finish: obj=")
    _, coverage = read(*(start + line for line in junk for start in starts))
    assert coverage.lines == 3 * len(junk)


@given(
    st.lists(
        st.tuples(st.sampled_from([received(), finished(), TEXT_LINE]), st.integers(0, 500)),
        max_size=8,
    )
)
def test_cut_lines_never_raise(pieces: list[tuple[str, int]]) -> None:
    requests, coverage = read(*(line[:end] for line, end in pieces))
    assert coverage.requests == len(requests)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = st.sampled_from(["rid", "text", "input_ids", "sampling_params", "custom_labels", "user"])
ANSWERS = st.sampled_from(["text", "output_ids", "prompt_token_ids", "meta_info"])


@given(st.dictionaries(FIELDS, JSON_VALUES), st.dictionaries(ANSWERS, JSON_VALUES), JSON_VALUES)
def test_fields_of_any_type_never_raise(
    obj: dict[str, Any], out: dict[str, Any], head: Any
) -> None:
    for kind in ("received", "received.openai", "finished"):
        read(event(kind, {"rid": "r1", **obj}, headers=head, out=out))


@given(JSON_VALUES)
def test_literals_read_what_python_writes(value: Any) -> None:
    read_back, end = parse(repr(value))
    assert end == len(repr(value))
    if isinstance(value, str | bool | None):
        assert read_back == value
    if isinstance(value, str):
        assert skip_string(repr(value), 0) == (len(value), len(repr(value)))


@given(st.text(alphabet="[](){}'\",: .\\ab1-=<>", max_size=60))
def test_literals_fail_in_one_way_only(text: str) -> None:
    with suppress(LiteralError):
        _, end = parse(text)
        assert 0 < end <= len(text)


def test_literals_are_bounded_in_depth() -> None:
    with pytest.raises(LiteralError):
        parse("[" * 10_000 + "'a'" + "]" * 10_000)
    assert parse("'a' ... 'b'")[0] is CUT
