"""Ids are found in answers of both engines, and taken out without touching anything else."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.tap.answer import Seen, read
from ingest.tap.dialects import DIALECTS, Dialect
from ingest.tap.question import Question
from ingest.tap.watch import Begun

VLLM_CHAT = DIALECTS["vllm"]["/v1/chat/completions"]
VLLM_TEXT = DIALECTS["vllm"]["/v1/completions"]
VLLM_RESPONSES = DIALECTS["vllm"]["/v1/responses"]
SGLANG_CHAT = DIALECTS["sglang"]["/v1/chat/completions"]
GENERATE = DIALECTS["sglang"]["/generate"]

IDS = frozenset({"prompt_token_ids", "token_ids", "response_token_ids"})
NOTHING: frozenset[str] = frozenset()


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def pairs(seen: Seen) -> list[tuple[int, Any, Any]]:
    return [(one.index, one.prompt, one.response) for one in seen.choices]


def chat(choices: list[dict[str, Any]], **more: Any) -> bytes:
    return compact({"id": "chatcmpl-1", "model": "m", "choices": choices} | more)


def test_a_whole_chat_of_vllm() -> None:
    usage = {"prompt_tokens": 2, "completion_tokens": 1}
    data = chat(
        [{"index": 0, "message": {"content": '"token_ids":[1]'}, "token_ids": [7]}],
        usage=usage,
        prompt_token_ids=[5, 6],
    )
    seen, kept = read(data, VLLM_CHAT, IDS)
    assert pairs(seen) == [(0, [5, 6], [7])]
    assert (seen.request_id, seen.prompt_tokens, seen.completion_tokens) == ("chatcmpl-1", 2, 1)
    assert kept == chat(
        [{"index": 0, "message": {"content": '"token_ids":[1]'}, "token_ids": None}],
        usage=usage,
        prompt_token_ids=None,
    )


def test_what_the_client_asked_for_stays_byte_for_byte() -> None:
    data = b'{ "choices": [ {"index":0, "token_ids":[ 1 ] } ], "prompt_token_ids":[2]}'
    seen, kept = read(data, VLLM_CHAT, NOTHING)
    assert kept is data
    assert pairs(seen) == [(0, [2], [1])]


def test_several_choices_of_completions_have_prompts_of_their_own() -> None:
    choices = [
        {"index": index, "text": "", "token_ids": [index], "prompt_token_ids": [10 + index]}
        for index in range(3)
    ]
    seen, kept = read(chat(choices), VLLM_TEXT, IDS)
    assert pairs(seen) == [(index, [10 + index], [index]) for index in range(3)]
    assert kept is not None
    assert b"[1" not in kept


def test_sglang_leaves_out_what_was_not_asked() -> None:
    choice = {"index": 0, "text": "a"}
    ids = {"prompt_token_ids": [5], "response_token_ids": [7]}
    seen, kept = read(chat([choice | ids]), SGLANG_CHAT, IDS)
    assert pairs(seen) == [(0, [5], [7])]
    assert kept == chat([choice])


def test_the_extension_of_sglang_comes_in_an_event_of_its_own() -> None:
    hidden = frozenset({"input_ids", "output_ids"})
    extension = {"input_ids": [1, 2], "output_ids": [[3], [4, 5]]}
    data = chat([], sglext=extension)
    seen, kept = read(data, SGLANG_CHAT, hidden)
    assert pairs(seen) == [(0, [1, 2], [3]), (1, [1, 2], [4, 5])]
    assert kept is None
    with_more = chat([], sglext=extension | {"routed_experts": "x"})
    assert read(with_more, SGLANG_CHAT, hidden)[1] == chat([], sglext={"routed_experts": "x"})
    with_usage = chat([], sglext=extension, usage={"prompt_tokens": 2})
    assert read(with_usage, SGLANG_CHAT, hidden)[1] == chat([], usage={"prompt_tokens": 2})
    assert read(data, SGLANG_CHAT, NOTHING)[1] is data


def test_an_event_that_came_for_its_ids_alone_is_not_passed_on() -> None:
    silent = {"index": 0, "delta": {}, "logprobs": None, "finish_reason": None, "token_ids": [1]}
    assert read(chat([silent]), VLLM_CHAT, IDS)[1] is None
    said: tuple[dict[str, Any], ...] = (
        {"delta": {"content": ""}},
        {"finish_reason": "stop"},
        {"logprobs": {"content": []}},
    )
    for spoken in said:
        assert read(chat([silent | spoken]), VLLM_CHAT, IDS)[1] is not None
    assert read(chat([silent]), VLLM_CHAT, NOTHING)[1] is not None


def test_generate_tells_all_ids_so_far_or_the_next_ones() -> None:
    meta = {"id": "r", "prompt_tokens": 2, "completion_tokens": 2, "finish_reason": None}
    body = {"text": "ab", "output_ids": [8, 9], "meta_info": meta}
    seen, kept = read(
        compact(body | {"prompt_token_ids": [1, 2]}), GENERATE, frozenset({"prompt_token_ids"})
    )
    assert pairs(seen) == [(0, [1, 2], [8, 9])]
    assert seen.choices[0].is_all
    assert kept == compact(body)
    delta = compact(body | {"output_ids": [9]})
    assert not read(delta, GENERATE, NOTHING)[0].choices[0].is_all


def test_generate_answers_several_prompts_in_a_list() -> None:
    one = {"text": "a", "output_ids": [1], "meta_info": {"id": "r", "finish_reason": None}}
    data = compact([one | {"prompt_token_ids": [5]}, one | {"prompt_token_ids": [6]}])
    seen, kept = read(data, GENERATE, frozenset({"prompt_token_ids"}))
    assert pairs(seen) == [(0, [5], [1]), (1, [6], [1])]
    assert kept == compact([one, one])


def test_an_error_inside_a_stream_has_a_status() -> None:
    seen, kept = read(b'{"error":{"message":"too long","code":400}}', GENERATE, IDS)
    assert seen.status == 400
    assert kept == b'{"error":{"message":"too long","code":400}}'


@pytest.mark.parametrize("is_event", [True, False])
def test_a_response_holds_messages_with_tokens(*, is_event: bool) -> None:
    def told(messages: Any) -> bytes:
        body = {"id": "resp_1", "status": "completed"} | {
            f"{side}_messages": messages(tokens)
            for side, tokens in (("input", [1, 2]), ("output", [3]))
        }
        return compact({"type": "response.completed", "response": body} if is_event else body)

    data = told(lambda ids: [{"message": "x", "tokens": ids, "type": "raw_message_tokens"}])
    seen, kept = read(data, VLLM_RESPONSES, frozenset({"input_messages", "output_messages"}))
    assert pairs(seen) == [(0, [1, 2], [3])]
    assert kept == told(lambda _: None)


names = st.text(max_size=4)
values = st.one_of(
    st.none(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(names, st.text(max_size=4), max_size=2),
)
objects = st.dictionaries(names, values, max_size=4)


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(objects, st.lists(objects, max_size=2))
def test_nothing_but_ids_is_ever_changed(top: dict[str, Any], choices: list[Any]) -> None:
    for dialect, gone in ((VLLM_CHAT, None), (SGLANG_CHAT, "absent")):
        given_up = [one | {"token_ids": [1]} for one in choices]
        plain = top | {"choices": given_up, "prompt_token_ids": [2]}
        plain.pop("sglext", None)
        plain.pop("usage", None)
        plain.pop("error", None)
        _, kept = read(compact(plain), dialect, IDS)
        assert kept is not None
        assert json.loads(kept) == _without(plain, dialect, gone)


def _without(body: dict[str, Any], dialect: Dialect, gone: str | None) -> Any:
    choices = [_taken_out(one, gone) for one in body["choices"]]
    assert dialect.writes_null == (gone is None)
    return _taken_out(body | {"choices": choices}, gone)


def _taken_out(one: dict[str, Any], gone: str | None) -> dict[str, Any]:
    if gone is None:
        return {name: None if name in IDS else value for name, value in one.items()}
    return {name: value for name, value in one.items() if name not in IDS or value is None}


def test_what_holds_ids_or_text_does_not_show_them() -> None:
    seen, kept = read(chat([{"index": 0, "token_ids": [4711]}]), VLLM_CHAT, IDS)
    question = Question(b'{"prompt":"4711"}', IDS, asks=True)
    for shown in (repr(seen), repr(question), repr(Begun(b"4711", None))):
        assert "4711" not in shown
    assert kept is not None
