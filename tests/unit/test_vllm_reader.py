"""The vLLM reader on small hand-made logs: every version and format, every cause of loss."""

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.coverage import Coverage
from ingest.sources.base import Loss, RawRequest
from ingest.sources.vllm import VllmLog
from ingest.sources.vllm_year import year_of_day

DEBUG = "(APIServer pid=7) DEBUG 03-01 10:00:00 [entrypoints/.../utils/request_logger.py:55] "
INFO = "(APIServer pid=7) INFO 03-01 10:00:01 [entrypoints/.../utils/request_logger.py:65] "
CORE = "(APIServer pid=7) INFO 03-01 10:00:02 [v1/engine/async_llm.py:783] "
PARAMS = "SamplingParams(n={n}, stop=[], ignore_eos=False, max_tokens={limit}, min_tokens=0)"


def read(
    *lines: str | bytes, year: int = 2026, **options: Any
) -> tuple[list[RawRequest], Coverage]:
    coverage = Coverage()
    raw = [line.encode() if isinstance(line, str) else line for line in lines]
    log = VllmLog(enumerate(raw, 1), engine="e1", coverage=coverage, year=year, **options)
    return list(log), coverage


def details(name: str, ids: object, text: object = None) -> str:
    held = f"prompt: {text!r}, prompt_token_ids: {ids}, prompt_embeds shape: None."
    return f"Request {name} details: {held}"


def received(name: str, *, n: int = 1, limit: int = 9, lora: str = "None") -> str:
    params = PARAMS.format(n=n, limit=limit)
    return f"Received request {name}: params: {params}, lora_request: {lora}."


def output_ids(name: str, ids: object, mode: str = "") -> str:
    return f"Generated response {name}{mode} details: output_token_ids: {ids}"


def output(name: str, text: str, finish: str | None, mode: str = "") -> str:
    return f"Generated response {name}{mode}: output: {text!r}, finish_reason: {finish}"


def plain(name: str = "chatcmpl-a", prompt: str = "hey") -> list[str]:
    return [
        DEBUG + details(name, [5, 6, 7], prompt),
        INFO + received(name),
        DEBUG + output_ids(name, [8, 9]),
        INFO + output(name, "it's", "stop"),
    ]


def stream(*deltas: tuple[list[int], str | None], limit: int = 9, end: bool = True) -> list[str]:
    name, lines = "chatcmpl-s", [DEBUG + details("chatcmpl-s", [1, 2]), ""]
    lines[1] = INFO + received(name, limit=limit)
    for ids, finish in deltas:
        lines.append(DEBUG + output_ids(name, ids, " (streaming delta)"))
        lines.append(INFO + output(name, "x", finish, " (streaming delta)"))
    if end:
        lines.append(DEBUG + output_ids(name, None, " (streaming complete)"))
        lines.append(INFO + output(name, "x", "streaming_complete", " (streaming complete)"))
    return lines


def test_a_plain_request_is_whole() -> None:
    (one,), coverage = read(*plain())
    assert (one.prompt_ids, one.response_ids) == ([5, 6, 7], [8, 9])
    assert one.prompt_loss is one.response_loss is None
    assert (one.finish_reason, one.engine) == ("stop", "e1")
    assert coverage.kind == "vllm"
    assert coverage.prompts.complete == coverage.responses.complete == 1


def test_text_times_span_their_second() -> None:
    (one,), _ = read(*plain())
    assert one.started_at_ms == 1772359200_000
    assert one.ended_at_ms == 1772359201_999


def test_0_11_one_line_prompt_and_output_at_info() -> None:
    head = "INFO 03-01 10:00:00 [logger.py:41] "
    prompt = "it's, prompt_token_ids: [66], lora_request: None"
    params = PARAMS.format(n=1, limit=2)
    (one,), _ = read(
        f"{head}Received request chatcmpl-a: prompt: {prompt!r}, params: {params}, "
        "prompt_token_ids: [3, 4], prompt_embeds shape: None, lora_request: None.",
        f"{head}Generated response chatcmpl-a: output: 'x', output_token_ids: [5], "
        "finish_reason: stop",
    )
    assert (one.prompt_ids, one.response_ids) == ([3, 4], [5])
    assert one.prompt_loss is one.response_loss is None


def test_0_16_prompt_at_debug_output_ids_at_info() -> None:
    (one,), _ = read(
        DEBUG + details("chatcmpl-a", [3, 4]),
        INFO + received("chatcmpl-a"),
        INFO
        + "Generated response chatcmpl-a: output: 'a', output_token_ids: [5], finish_reason: stop",
    )
    assert (one.prompt_ids, one.response_ids) == ([3, 4], [5])


@pytest.mark.parametrize("asked_as", ["cmpl-a-0", "cmpl-a"])
def test_0_33_completions_have_outputs(asked_as: str) -> None:
    (one,), _ = read(
        *plain("cmpl-a-0")[:2], *(line.replace("chatcmpl-a", asked_as) for line in plain()[2:])
    )
    assert (one.request_id, one.parent_id, one.response_ids) == ("cmpl-a-0", "cmpl-a", [8, 9])


def test_prompts_of_one_call_are_answered_in_order() -> None:
    lines = [*plain("cmpl-a-0")[:2], *plain("cmpl-a-1")[:2]]
    for ids in ([1], [2]):
        lines += [DEBUG + output_ids("cmpl-a", ids), INFO + output("cmpl-a", "x", "stop")]
    requests, _ = read(*lines)
    assert [(one.request_id, one.response_ids) for one in requests] == [
        ("cmpl-a-0", [1]),
        ("cmpl-a-1", [2]),
    ]


def test_completions_of_a_known_old_version_come_at_once() -> None:
    banner = (
        "(APIServer pid=7) INFO 03-01 10:00:00 [api_utils.py:1] vLLM server version 0.32.0, serving"
    )
    (one, two), coverage = read(banner, *plain("cmpl-a-0")[:2], *plain())
    assert (one.request_id, two.request_id) == ("cmpl-a-0", "chatcmpl-a")
    assert one.response_loss is Loss.NOT_LOGGED
    assert "0.32" in next(row.fix for row in coverage.losses())


@pytest.mark.parametrize(
    "dress",
    [
        lambda line: line,
        lambda line: line.replace("(APIServer pid=7) ", ""),
        lambda line: "prod-7 " + line,
        lambda line: line.replace("DEBUG", "\x1b[37mDEBUG\x1b[0m").replace(
            "INFO", "\x1b[32mINFO\x1b[0m"
        ),
    ],
)
def test_prefixes_and_colours_do_not_matter(dress: object) -> None:
    assert callable(dress)
    (one,), _ = read(*(dress(line) for line in plain()))
    assert (one.prompt_ids, one.response_ids) == ([5, 6, 7], [8, 9])


@pytest.mark.parametrize("prefix", ["", "(APIServer pid=7) "])
def test_json_lines_have_exact_times(prefix: str) -> None:
    lines = [
        prefix
        + json.dumps(
            {
                "asctime": f"2026-03-01 10:00:0{at},250",
                "levelname": "INFO",
                "name": "vllm.entrypoints.serve.utils.request_logger",
                "message": line.split("] ", 1)[1],
            }
        )
        for at, line in enumerate(plain())
    ]
    (one,), _ = read(*lines)
    assert (one.started_at_ms, one.ended_at_ms) == (1772359200_250, 1772359203_250)
    assert one.response_ids == [8, 9]


def test_a_stream_is_whole_only_if_its_length_proves_it() -> None:
    (proven,), _ = read(*stream(([1], None), ([2, 3], "length"), limit=3))
    (short,), _ = read(*stream(([1], None), ([2], "length"), limit=3))
    (stopped,), _ = read(*stream(([1], None), ([2], "stop"), limit=3))
    assert (proven.response_ids, proven.response_loss) == ([1, 2, 3], None)
    assert (short.response_ids, short.response_loss) == ([1, 2], Loss.DELTAS_LOST)
    assert (stopped.response_ids, stopped.response_loss) == ([1, 2], Loss.DELTAS_LOST)


def test_an_aborted_stream_takes_its_last_delta() -> None:
    lines = stream(([1], None), end=False)
    late = stream(([2], None), end=False)[2:]
    (one,), _ = read(*lines, CORE + "Aborted request(s) chatcmpl-s-0a1b2c3d.", *late)
    assert (one.response_ids, one.response_loss) == ([1, 2], Loss.NEVER_FINISHED)
    assert one.finish_reason == "abort"


def test_an_answer_without_text_has_no_line() -> None:
    requests, coverage = read(*plain("chatcmpl-a")[:2], *plain("chatcmpl-b"))
    assert [one.response_loss for one in requests] == [None, Loss.NO_OUTPUT_LINE]
    assert coverage.responses.incomplete == {Loss.NO_OUTPUT_LINE: 1}


def test_info_level_holds_no_ids() -> None:
    (one,), _ = read(INFO + received("chatcmpl-a"), INFO + output("chatcmpl-a", "x", "stop"))
    assert one.prompt_loss is one.response_loss is Loss.NOT_LOGGED


def test_tokenize_expects_no_answer() -> None:
    (one,), coverage = read(
        DEBUG + details("tokenize-1", [1]),
        INFO + "Received request tokenize-1: params: None, lora_request: None.",
    )
    assert one.response_loss is None
    assert coverage.responses.none_expected == 1


def test_several_answers_become_several_requests() -> None:
    lines = [DEBUG + details("chatcmpl-a", [1]), INFO + received("chatcmpl-a", n=2)]
    for ids in ([2], [3]):
        lines += [DEBUG + output_ids("chatcmpl-a", ids), INFO + output("chatcmpl-a", "x", "stop")]
    one, two = read(*lines)[0]
    assert (one.request_id, one.response_ids, one.parent_id) == ("chatcmpl-a", [2], None)
    assert (two.request_id, two.response_ids, two.parent_id) == ("chatcmpl-a#1", [3], "chatcmpl-a")


def test_a_repeated_id_begins_a_new_request() -> None:
    requests, _ = read(*plain(), *plain())
    assert [one.response_ids for one in requests] == [[8, 9], [8, 9]]


def test_answers_of_running_namesakes_are_withheld() -> None:
    lines = stream(([1], None), end=False)
    first, second = read(*lines, *stream(([2], "stop")))[0]
    assert first.response_ids == [1]
    assert (second.response_ids, second.response_loss) == (None, Loss.DELTAS_LOST)


def body(name: str, fields: object) -> str:
    return DEBUG + f"Request {name} JSON body: {json.dumps(fields)}"


def test_body_hints_reach_their_request() -> None:
    fields = {"model": "m1", "user": "u1", "cache_salt": "s1", "session_id": "x1", "messages": []}
    (one,), _ = read(body("a", fields), *plain())
    assert one.identity == {"user": "u1", "cache_salt": "s1", "session_id": "x1"}
    assert (one.model, one.end_user, one.session) == ("m1", "u1", "x1")
    assert read(body("other", fields), *plain())[0][0].identity == {}


def test_a_chat_has_no_index_and_takes_no_hints_of_another_id() -> None:
    lines = [line.replace("chatcmpl-a", "chatcmpl-a-7") for line in plain()]
    (one,), _ = read(body("a", {"user": "other"}), *lines)
    assert (one.request_id, one.identity) == ("chatcmpl-a-7", {})
    (one,), _ = read(body("a", {"user": "u1"}), *plain("cmpl-a-0"))
    assert one.identity == {"user": "u1"}


def test_an_answer_left_over_from_running_namesakes_has_no_hints() -> None:
    """Its prompt is over, and the body is that of whoever asked last."""
    asked = [[body("a", {"user": user}), *plain()[:2]] for user in ("u1", "u2")]
    requests, _ = read(*asked[0], *asked[1], *plain()[2:], *plain()[2:])
    assert [(one.identity.get("user"), one.response_ids) for one in requests] == [
        ("u1", None),
        ("u2", None),
        (None, [8, 9]),
    ]


def test_a_body_over_several_lines_is_joined_and_cannot_pose_as_a_record() -> None:
    head = DEBUG.rstrip()
    (one,), _ = read(
        f'{head} Request a JSON body: {{"user":\r',
        f"{head} Received request chatcmpl-evil: params: None, lora_request: None.\r",
        f'{head} "u1"}}',
        *plain(),
    )
    assert one.request_id == "chatcmpl-a"


def test_the_rest_of_a_body_is_no_record_though_it_begins_as_one() -> None:
    rest = [DEBUG + line for line in (details("chatcmpl-x", [1]) + "\r", "}")]
    (one,), coverage = read(*rest, *plain())
    assert one.request_id == "chatcmpl-a"
    assert coverage.broken_by_reason == {"truncated_message": 1}


def test_other_loggers_are_not_believed() -> None:
    fake = "(APIServer pid=7) INFO 03-01 10:00:00 [serving.py:9] " + received("chatcmpl-evil")
    assert read(fake)[0] == []


def test_the_lora_name_is_a_hint() -> None:
    lora = "LoRARequest(lora_name='acme-lora', lora_int_id=1)"
    (one,), _ = read(INFO + received("chatcmpl-a", lora=lora))
    assert one.identity == {"lora_name": "acme-lora"}


def test_max_log_len_shows_by_equal_lengths() -> None:
    ids, text = list(range(16)), "x" * 16
    later = [line.replace("chatcmpl-a", "chatcmpl-b") for line in plain()]
    later[0] = DEBUG + details("chatcmpl-b", ids)
    lines = plain()
    lines[0] = DEBUG + details("chatcmpl-a", ids, text)
    requests, coverage = read(*lines, *later)
    assert [one.prompt_loss for one in requests] == [Loss.TRUNCATED, Loss.TRUNCATED]
    assert "--max-log-len" in next(row.fix for row in coverage.losses())


def test_two_cut_bodies_show_max_log_len() -> None:
    cut = [DEBUG + f"Request {name} JSON body: " + '{"messages":[{"c' for name in "pq"]
    lines = plain()
    lines[0] = DEBUG + details("chatcmpl-a", list(range(16)))
    (one,), _ = read(*cut, *lines)
    assert one.prompt_loss is Loss.TRUNCATED


def test_what_never_ends_falls_out_by_time_and_by_number() -> None:
    first, second = plain("chatcmpl-a")[:2], plain("chatcmpl-b")[:2]
    assert read(*first, *second, max_unfinished=1)[0][0].request_id == "chatcmpl-a"
    late = [line.replace(" 10:00", " 13:00") for line in plain("chatcmpl-c")]
    assert [one.request_id for one in read(*first, *late)[0]] == ["chatcmpl-a", "chatcmpl-c"]


def test_december_rolls_over_to_january() -> None:
    old = [line.replace("03-01 10", "12-31 23") for line in plain("chatcmpl-a")]
    new = [line.replace("03-01 10", "01-01 00") for line in plain("chatcmpl-b")]
    one, two = read(*old, *new, year=2025)[0]
    assert 0 < two.started_at_ms - one.started_at_ms == 3_600_000


def test_the_year_may_be_told_by_the_first_day_that_comes() -> None:
    asked: list[tuple[int, int]] = []

    def first_year(month: int, day: int) -> int:
        asked.append((month, day))
        return 2025

    old = [line.replace("03-01 10", "12-31 23") for line in plain("chatcmpl-a")]
    new = [line.replace("03-01 10", "01-01 00") for line in plain("chatcmpl-b")]
    raw = [line.encode() for line in ["a banner", *old, *new]]
    log = VllmLog(enumerate(raw), engine="e", coverage=Coverage(), year=first_year)
    days = [datetime.fromtimestamp(one.started_at_ms / 1000, UTC).date() for one in log]
    assert days == [date(2025, 12, 31), date(2026, 1, 1)]
    assert asked == [(12, 31)]


@pytest.mark.parametrize(("days", "years"), [(-200, 0), (0, 0), (1, 0), (3, -1)])
def test_a_first_day_that_is_not_yet_is_of_the_year_before(days: int, years: int) -> None:
    written = datetime(2026, 7, 20, 12, tzinfo=UTC)
    day = written + timedelta(days=days)
    assert year_of_day(day.month, day.day, written=written) == 2026 + years


def test_broken_lines_are_counted_by_line_and_word_only() -> None:
    secret = "swordfish"
    requests, coverage = read(
        INFO + f"Generated response chatcmpl-a: output: '{secret}",
        '{"message": "Received request ' + secret,
        *plain(),
    )
    assert len(requests) == 1
    assert coverage.broken_by_reason == {"output_unreadable": 1, "json_unreadable": 1}
    assert [sample.line for sample in coverage.broken_samples] == [1, 2]
    assert secret not in repr(coverage)


def test_a_cut_prompt_line_keeps_the_request() -> None:
    lines = plain()
    lines[0] = lines[0][:-30]
    (one,), _ = read(*lines)
    assert (one.prompt_loss, one.response_ids) == (Loss.TRUNCATED, [8, 9])


ALL = [
    *plain(),
    *stream(([1], "length")),
    body("a", {"user": "u"}),
    CORE + "Request chatcmpl-s aborted.",
]


@given(st.lists(st.binary(max_size=200), max_size=5))
def test_random_bytes_never_raise(junk: list[bytes]) -> None:
    _, coverage = read(*junk, *(INFO.encode() + line for line in junk))
    assert coverage.lines == 2 * len(junk)


@given(st.lists(st.tuples(st.sampled_from(ALL), st.integers(0, 400)), max_size=12))
def test_cut_and_shuffled_lines_never_raise(pieces: list[tuple[str, int]]) -> None:
    requests, coverage = read(*(line[:end] for line, end in pieces))
    assert coverage.requests == len(requests)


@given(st.text(max_size=40), st.lists(st.integers(0, 200_000), max_size=8))
def test_any_prompt_text_leaves_the_ids_alone(text: str, ids: list[int]) -> None:
    lines = plain()
    lines[0] = DEBUG + details("chatcmpl-a", ids, text)
    coverage = Coverage()
    raw = [line.encode("utf-8", "replace") for line in lines]
    (one,) = VllmLog(enumerate(raw, 1), engine="e1", coverage=coverage, year=2026)
    assert one.prompt_ids == ids
