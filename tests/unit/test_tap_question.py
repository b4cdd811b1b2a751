"""Asking for ids changes a request by what asks for them, and nothing else."""

import json
from typing import Any

import msgspec
import pytest

from ingest.tap.dialects import DIALECTS
from ingest.tap.question import UNREADABLE, Client, Question

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
MESSAGES = [{"role": "user", "content": "hello"}]


def asked(kind: str, path: str, body: str, **isolation: str) -> Question:
    client = Client(body.encode(), DIALECTS[kind][path])
    return client.question(request_id="0" * 32, isolation=isolation)


def added(question: Question, body: str) -> dict[str, Any]:
    before = json.loads(body)
    after: dict[str, Any] = json.loads(question.body)
    assert {name: after[name] for name in before if before[name] is not False} == {
        name: value for name, value in before.items() if value is not False
    }
    return {name: value for name, value in after.items() if name not in before}


@pytest.mark.parametrize(
    ("kind", "path", "body", "fields"),
    [
        ("vllm", CHAT, "{}", {"return_token_ids", "request_id"}),
        ("vllm", COMPLETIONS, '{"stream":true}', {"return_token_ids", "request_id"}),
        ("vllm", "/v1/responses", "{}", {"enable_response_messages", "request_id"}),
        ("sglang", CHAT, "{}", {"return_token_ids", "rid"}),
        (
            "sglang",
            CHAT,
            '{"stream":true}',
            {"return_input_ids_in_sglext", "return_output_ids_in_sglext", "rid"},
        ),
        ("sglang", COMPLETIONS, '{"stream":true}', {"return_token_ids", "rid"}),
        ("sglang", "/generate", "{}", {"return_prompt_token_ids", "rid"}),
    ],
)
def test_each_engine_is_asked_in_its_own_words(
    kind: str, path: str, body: str, fields: set[str]
) -> None:
    question = asked(kind, path, body)
    assert set(added(question, body)) == fields
    assert question.asks
    assert question.hidden


def test_what_a_client_asks_for_itself_is_not_hidden() -> None:
    body = '{"return_token_ids":true,"request_id":"mine"}'
    question = asked("vllm", CHAT, body)
    assert question.body == body.encode()
    assert question.hidden == frozenset()
    assert question.asks


def test_one_side_asked_for_leaves_the_other_hidden() -> None:
    question = asked("sglang", CHAT, '{"stream":true,"return_input_ids_in_sglext":1}')
    assert question.hidden == {"output_ids"}


@pytest.mark.parametrize("value", ["false", "null"])
def test_a_client_that_says_no_is_asked_for_all_the_same(value: str) -> None:
    question = asked("vllm", CHAT, f'{{"return_token_ids":{value}}}')
    assert json.loads(question.body)["return_token_ids"] is True
    assert "token_ids" in question.hidden


def test_everything_else_stays_as_it_was_written() -> None:
    body = '{"a":1.50,"b":"\\u00e9\\n","c":[ 1, 2 ],"d":{"e" : null},"f":1e400,"request_id":"x"}'
    question = asked("vllm", CHAT, body)
    assert question.body == body.encode()[:-1] + b',"return_token_ids":true}'


def test_a_prompt_that_would_be_echoed_is_not_asked_about() -> None:
    question = asked("vllm", COMPLETIONS, '{"echo":true,"request_id":"x"}')
    assert question.hidden == frozenset()
    assert not question.asks
    assert asked("sglang", COMPLETIONS, '{"echo":true}').asks


def test_several_prompts_get_no_common_id() -> None:
    assert "rid" in added(asked("sglang", "/generate", '{"text":"a"}'), '{"text":"a"}')
    for body in ('{"text":["a","b"]}', '{"input_ids":[[1],[2]]}'):
        assert "rid" not in added(asked("sglang", "/generate", body), body)


def test_isolation_replaces_what_the_client_gave() -> None:
    question = asked("vllm", CHAT, '{"cache_salt":"mine"}', cache_salt="tag")
    assert json.loads(question.body)["cache_salt"] == "tag"


def test_roles_are_those_of_messages_that_say_something() -> None:
    messages = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "42"},
    ]
    body = json.dumps({"messages": messages}).encode()
    roles = Client(body, DIALECTS["vllm"][CHAT]).roles
    assert roles == ("system", "user", "assistant", "tool")
    assert Client(b'{"messages":3}', DIALECTS["vllm"][CHAT]).roles is None
    assert Client(body, DIALECTS["vllm"][COMPLETIONS]).roles is None


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"a":\xff}', b"3", b'{"a":NaN}'])
def test_what_is_no_object_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(UNREADABLE):
        Client(body, DIALECTS["vllm"][CHAT])


def test_names_are_short_texts() -> None:
    body = msgspec.json.encode({"user": "acme", "tenant": 3, "model": "m" * 513})
    client = Client(body, DIALECTS["vllm"][CHAT])
    assert client.field("user") == "acme"
    assert client.field("tenant") is None
    assert client.field("model") is None
