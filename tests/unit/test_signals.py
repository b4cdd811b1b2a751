"""Every message that an engine is known to write is its event; quotes and near misses are none."""

import json
import time

import pytest

from detector.signals import built_in
from ingest.schema import check, decode, encode
from ingest.schema_records import EngineEvent, EventKind
from ingest.signals.signals import MAX_RECENT, Signals
from tests.unit.engine_messages import FINISH_REASONS, NOT_EVENTS, SGLANG, VLLM, Row

NOW_MS = 1_796_000_000_000
"""2026-11-30 00:53:20 UTC."""


PATTERNS = (built_in("vllm"), built_in("sglang"))


def signals() -> Signals:
    return Signals(PATTERNS)


def event(line: str, looked: Signals | None = None) -> EngineEvent | None:
    return (looked or signals()).event(line.encode(), "e0", "pool", NOW_MS)


def vllm_line(message: str, place: str = "v1/engine/async_llm.py:811") -> str:
    return f"(APIServer pid=24238) INFO 11-29 17:29:57 [{place}] {message}"


def vllm_json(message: str, name: str = "vllm.v1.engine.async_llm") -> str:
    return json.dumps(
        {
            "asctime": "2026-11-29 17:34:20,880",
            "levelname": "INFO",
            "name": name,
            "process": 25366,
            "message": message,
            "vllm_process_name": "APIServer",
        }
    )


def sglang_line(message: str, rank: str = " DP0 TP0") -> str:
    return f"[2026-11-29 17:54:42{rank}] {message}"


def found(got: EngineEvent | None, text: str) -> Row | None:
    if got is None:
        return None
    assert (got.engine, got.kv_pool) == ("e0", "pool")
    return Row(text, got.kind, got.detail, got.request_id, got.prompt_tokens, got.limit_tokens)


@pytest.mark.parametrize("row", VLLM, ids=lambda row: row.text[:60])
def test_what_vllm_says_is_its_event(row: Row) -> None:
    place = "async_llm.py:811"
    for line in (
        vllm_line(row.text, place),
        vllm_line(row.text, f"v1/engine/{place}"),
        "\x1b[0;36m(APIServer pid=1)\x1b[0;0m INFO 11-29 17:29:57 [" + place + "] " + row.text,
        f"INFO 11-29 17:29:57 [{place}] {row.text}",
        vllm_json(row.text),
        "(APIServer pid=24238) " + vllm_json(row.text),
    ):
        assert found(event(line), row.text) == row


@pytest.mark.parametrize("row", SGLANG, ids=lambda row: row.text[:60])
def test_what_sglang_says_is_its_event(row: Row) -> None:
    for line in (sglang_line(row.text), sglang_line(row.text, "")):
        assert found(event(line), row.text) == row


@pytest.mark.parametrize("text", NOT_EVENTS)
def test_what_only_looks_like_an_event_is_none(text: str) -> None:
    for line in (vllm_line(text), vllm_json(text), sglang_line(text), text):
        assert event(line) is None


@pytest.mark.parametrize("row", [*VLLM, *SGLANG], ids=lambda row: row.text[:60])
def test_a_message_counts_from_its_start_only(row: Row) -> None:
    for text in (f"a {row.text}", f"prompt: '{row.text}'", f"> {row.text}"):
        for line in (vllm_line(text), vllm_json(text), sglang_line(text), text):
            assert event(line) is None


@pytest.mark.parametrize("row", [*VLLM, *SGLANG], ids=lambda row: row.text[:60])
def test_a_request_logger_never_says_an_event(row: Row) -> None:
    for place in (
        "request_logger.py:55",
        "entrypoints/.../utils/request_logger.py:55",
        "logger.py:3",
    ):
        assert event(vllm_line(row.text, place)) is None
    for name in ("vllm.entrypoints.serve.utils.request_logger", "vllm.entrypoints.logger"):
        assert event(vllm_json(row.text, name)) is None


def test_a_line_break_in_a_message_does_not_begin_another() -> None:
    looked = signals()
    first = vllm_line("Error with model", "serving.py:274") + "\r"
    inside = vllm_line("KV group count mismatch: local=1", "serving.py:274")
    assert event(first, looked) is None
    assert event(inside + "\r", looked) is None
    assert event(inside, looked) is None
    assert event(vllm_line("KV group count mismatch: local=1", "base.py:1"), looked) is not None


def test_the_first_line_of_a_long_message_is_an_event_once() -> None:
    looked = signals()
    line = vllm_line("Request a failed due to OSError('x')")
    got = [event(one, looked) for one in (line + "\r", line + "\r", line)]
    assert [one is not None for one in got] == [True, False, False]


@pytest.mark.parametrize("row", FINISH_REASONS, ids=lambda row: row.text)
@pytest.mark.parametrize("prefix", ["", "[2026-11-29 17:54:42] "])
def test_an_aborted_request_of_the_request_log_is_an_event(row: Row, prefix: str) -> None:
    reason = {"type": "abort", "message": row.text, "status_code": 503}
    record = {
        "timestamp": "2026-11-29T17:54:42.500000",
        "event": "request.finished",
        "rid": "r-9",
        "obj": {"rid": "r-9", "text": 'say "abort"', "input_ids": [1, 2]},
        "out": {"text": "", "output_ids": [3], "meta_info": {"finish_reason": reason}},
    }
    got = event(prefix + json.dumps(record))
    assert found(got, row.text) == row._replace(request_id="r-9")
    assert got is not None
    assert got.at_ms == 1_795_974_882_500


def test_an_aborted_request_is_found_in_the_text_form() -> None:
    line = (
        "[2026-11-29 17:54:42] Finish: obj=GenerateReqInput(rid='r-9', text='x'), out={'text': '', "
        "'meta_info': {'finish_reason': {'type': 'abort', 'message': 'Aborted'}}}"
    )
    assert found(event(line), "Aborted") == Row("Aborted", EventKind.ABORTED, None, "r-9")


@pytest.mark.parametrize(
    "record",
    [
        {"event": "request.finished", "out": {"meta_info": {"finish_reason": {"type": "stop"}}}},
        {"event": "request.finished", "out": {"text": "", "meta_info": {"finish_reason": None}}},
        {"event": "request.finished", "out": {"meta_info": {"finish_reason": ["abort"]}}},
        {"event": "request.received", "obj": {"finish_reason": {"type": "abort"}}},
        {"event": "request.finished", "obj": {"text": {"type": "abort"}}, "out": {}},
    ],
)
def test_other_requests_of_the_request_log_are_no_events(record: dict[str, object]) -> None:
    assert event(json.dumps({"timestamp": "2026-11-29T17:54:42", **record})) is None


def test_an_error_that_ends_a_traceback_is_an_event_where_an_engine_raises_it() -> None:
    leak = "pool memory leak detected! [full] total=1536, available=55"
    assert found(event(f"ValueError: {leak}"), leak) == Row(
        leak, EventKind.LEAK_DETECTED, "kv_pool"
    )
    assert event(f"    raise ValueError: {leak}") is None
    assert event(f"my ValueError: {leak}") is None
    assert event("ValueError: Request a aborted.") is None


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('INFO:     127.0.0.1:44328 - "POST /v1/completions HTTP/1.1" 400 Bad Request', True),
        (
            '[2026-11-29 17:54:42] INFO:     [::1]:4 - "POST /generate HTTP/1.1" 400 Bad Request',
            True,
        ),
        ('INFO:     10.0.0.9:1 - "POST /v1/chat/completions?x=1 HTTP/1.1" 400 Bad Request', True),
        ('INFO:     127.0.0.1:44328 - "POST /v1/completions HTTP/1.1" 200 OK', False),
        ('INFO:     127.0.0.1:44328 - "POST /flush_cache HTTP/1.1" 400 Bad Request', False),
        ('INFO:     127.0.0.1:44328 - "GET /v1/completions HTTP/1.1" 400 Bad Request', False),
    ],
)
def test_a_refusal_that_only_the_web_server_logs_is_an_event(line: str, expected: bool) -> None:
    got = event(line)
    assert (got is not None) == expected
    if got is not None:
        assert (got.kind, got.detail) == (EventKind.REJECTED, "http_400")


def test_two_lines_about_one_abort_are_one_event() -> None:
    looked = signals()
    lines = ["Aborted request(s) cmpl-a-0-aca2eda5.", "Request cmpl-a-0 aborted."]
    assert [event(vllm_line(one), looked) is not None for one in lines] == [True, False]
    assert event(vllm_line(lines[1]).replace("17:29:57", "17:39:57"), looked) is not None
    for number in range(MAX_RECENT):
        assert event(vllm_line(f"Request cmpl-{number} aborted."), looked) is not None
    assert event(vllm_line(lines[1]).replace("17:29:57", "17:39:58"), looked) is not None


@pytest.mark.parametrize(
    ("stamp", "now_ms", "expected_ms"),
    [
        ("11-29 17:29:57", NOW_MS, 1_795_973_397_000),
        ("12-31 23:59:59", 1_798_761_601_000, 1_798_761_599_000),
        ("02-30 00:00:00", NOW_MS, NOW_MS),
    ],
)
def test_a_time_without_a_year_is_the_one_nearest_to_now(
    stamp: str, now_ms: int, expected_ms: int
) -> None:
    line = f"(APIServer pid=1) INFO {stamp} [async_llm.py:1] Request a aborted."
    got = signals().event(line.encode(), "e0", None, now_ms)
    assert got is not None
    assert (got.at_ms, got.kv_pool) == (expected_ms, "e0")


@pytest.mark.parametrize("bad", ["\u200b", "x" * 513, "a\x07b"])
def test_an_id_that_no_record_may_hold_is_left_out(bad: str) -> None:
    got = event(
        sglang_line(f"Decode transfer failed for request rank=0 decode_req.req.rid='{bad}' x")
    )
    assert got is None or got.request_id is None


@pytest.mark.parametrize("row", [*VLLM, *SGLANG], ids=lambda row: row.text[:60])
def test_an_event_is_a_record_that_readers_accept(row: Row) -> None:
    got = event(vllm_line(row.text)) or event(sglang_line(row.text))
    assert got is not None
    again = decode(EngineEvent, encode(got))
    check(again)
    assert again == got


def test_lines_cut_and_joined_anywhere_raise_nothing() -> None:
    looked = signals()
    for row in (*VLLM, *SGLANG):
        for line in (vllm_line(row.text), vllm_json(row.text), sglang_line(row.text)):
            raw = line.encode()
            for at in range(0, len(raw), 7):
                looked.event(raw[:at], "e0", None, NOW_MS)
                looked.event(raw[at:] + b"\xff\r", "e0", None, NOW_MS)
    looked.event(b"", "e0", None, NOW_MS)


def test_most_lines_are_told_apart_far_faster_than_by_trying_all_patterns() -> None:
    looked = signals()
    quiet = [
        vllm_line(
            "Generated response a (streaming delta) details: output_token_ids: [3559]", "r.py:1"
        ),
        sglang_line("Prefill batch, #new-seq: 1, #new-token: 1, token usage: 0.00"),
        vllm_json("Generated response a: output: 'x', finish_reason: stop"),
    ]
    lines = [one.encode() for one in quiet]
    patterns = [one for file in PATTERNS for one in file.patterns]
    compiled = [one.compiled for one in patterns if one.compiled is not None]

    def all_patterns(line: bytes) -> None:
        text = line.decode()
        for pattern in compiled:
            pattern.search(text)

    def fastest(work: "object", rounds: int) -> float:
        assert callable(work)
        best = float("inf")
        for _ in range(7):
            begun = time.process_time_ns()
            for _ in range(rounds):
                for line in lines:
                    work(line)
            best = min(best, (time.process_time_ns() - begun) / rounds / len(lines))
        return best

    ours = fastest(lambda line: looked.event(line, "e0", None, 0), 300)
    theirs = fastest(all_patterns, 30)
    print(f"{ours:.0f} ns a line, all patterns {theirs:.0f} ns: {theirs / ours:.0f} times")
    assert theirs > 2 * ours  # 4 and more where nothing counts branches
