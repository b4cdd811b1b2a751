"""What passes through a tap: answers as the client asked for them, and all their ids kept."""

import json
import re
from typing import Any

import httpx
import pytest

from detector.model import Kind, Role
from ingest.schema_records import RequestRow, SequenceRecord
from ingest.tenancy import ApiKeyRule, FieldRule, TenancySettings
from tests.fakes.http_engine import HttpEngine
from tests.tap.kit import TENANT, Tapped, hashes, tapped
from tests.tap.requests import CALLS, CHAT, GENERATE, TEXT, Body, body

ASKING: dict[tuple[str, bool], Body] = {
    (CHAT, True): {"return_input_ids_in_sglext": True, "return_output_ids_in_sglext": True},
    (GENERATE, True): {"return_prompt_token_ids": True},
    (GENERATE, False): {"return_prompt_token_ids": True},
}
IDS = re.compile(rb'"(?:prompt_token_ids|token_ids|response_token_ids|input_ids)":\[\d')


def plain(answer: httpx.Response) -> bytes:
    """Return an answer without what differs from one request to the next.

    The fake leaves out of its streams what vLLM writes as null.
    """
    content = re.sub(rb'"id":"[^"]*"', b'"id":""', answer.content)
    return re.sub(rb',"(?:prompt_)?token_ids":null', b"", content)


def told_ids(answer: httpx.Response) -> tuple[list[int], list[int]]:
    """Return the ids of both sides as a client reads them that has asked for them."""
    prompt: list[int] = []
    response: list[int] = []
    for told in objects(answer):
        choice: dict[str, Any] = (told.get("choices") or [{}])[0]
        extension = told.get("sglext") or {}
        for holder in (told, choice, extension):
            prompt = holder.get("prompt_token_ids") or holder.get("input_ids") or prompt
            response += holder.get("token_ids") or holder.get("response_token_ids") or []
        response = told.get("output_ids") or (extension.get("output_ids") or [response])[0]
    return prompt, response


def objects(answer: httpx.Response) -> list[dict[str, Any]]:
    """Return the objects of an answer: the only one, or those of a stream."""
    if not answer.headers["content-type"].startswith("text/event-stream"):
        return [answer.json()]
    lines = answer.text.splitlines()
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


@pytest.mark.parametrize(("kind", "path", "stream"), CALLS)
def test_a_client_sees_what_the_engine_itself_would_say(
    engines: dict[str, HttpEngine], taps: dict[str, Tapped], kind: str, path: str, *, stream: bool
) -> None:
    asked = body(path, stream=stream)
    direct = httpx.post(engines[kind].url + path, json=asked, headers=TENANT)
    through = httpx.post(taps[kind].url + path, json=asked, headers=TENANT)
    assert through.status_code == direct.status_code == 200
    assert plain(through) == plain(direct)
    assert not IDS.search(through.content)
    assert {*through.headers} == {*direct.headers}
    assert {record.tenant for record in taps[kind].records()} == {"acme"}


@pytest.mark.parametrize(("kind", "path", "stream"), CALLS)
def test_a_client_that_asks_gets_the_ids_that_are_kept(
    taps: dict[str, Tapped], kind: str, path: str, *, stream: bool
) -> None:
    wants = {} if kind == "vllm" else ASKING.get((path, stream), {})
    asked = body(path, stream=stream) | (wants or {"return_token_ids": True})
    answer = httpx.post(taps[kind].url + path, json=asked, headers=TENANT)
    prompt, response = told_ids(answer)
    assert len(response) == 6
    kept = {
        one.kind: one.token_hashes
        for one in taps[kind].records()
        if isinstance(one, SequenceRecord)
    }
    assert kept == {Kind.PROMPT: hashes(prompt), Kind.RESPONSE: hashes(response)}


def test_ids_of_requests_have_one_width(
    engines: dict[str, HttpEngine], taps: dict[str, Tapped]
) -> None:
    for kind, field in (("vllm", "request_id"), ("sglang", "rid")):
        for _ in range(2):
            httpx.post(taps[kind].url + CHAT, json=body(CHAT, stream=False), headers=TENANT)
        given = [asked[field] for _, _, asked in engines[kind].received[-2:]]
        assert [len(one) for one in given] == [32, 32]
        assert given[0] != given[1]
        names = {one.request_id for one in taps[kind].records()}
        assert len(names) == 2
        assert all(any(one in name for name in names) for one in given)


def test_roles_of_messages_name_the_spans_of_the_prompt(taps: dict[str, Tapped]) -> None:
    asked = body(CHAT, stream=False)
    asked["messages"] = [
        {"role": "system", "content": "import class"},
        {"role": "user", "content": "return yield"},
        {"role": "tool", "content": "lambda raise"},
    ]
    httpx.post(taps["vllm"].url + CHAT, json=asked, headers=TENANT)
    (prompt,) = taps["vllm"].sequences(Kind.PROMPT)
    roles = [span.role for span in prompt.spans if span.role is not Role.TEMPLATE]
    assert roles == [Role.SYSTEM, Role.USER, Role.TOOL]


def test_a_refused_request_is_a_row_without_ids(taps: dict[str, Tapped]) -> None:
    asked = body(TEXT, stream=False, words="import " * 20_000)
    answer = httpx.post(taps["vllm"].url + TEXT, json=asked, headers=TENANT, timeout=60)
    assert answer.status_code == 400
    (row,) = taps["vllm"].records()
    assert isinstance(row, RequestRow)
    assert (row.tenant, row.status) == ("acme", 400)


def test_a_stream_that_begins_well_may_end_as_an_error(taps: dict[str, Tapped]) -> None:
    asked = body(GENERATE, stream=True, words="import " * 20_000)
    answer = httpx.post(taps["sglang"].url + GENERATE, json=asked, headers=TENANT, timeout=60)
    assert answer.status_code == 200
    (row,) = taps["sglang"].records()
    assert row.status == 400


@pytest.mark.parametrize(
    ("rule", "headers", "more", "tenant"),
    [
        (FieldRule(name="user"), {}, {"user": "globex"}, "globex"),
        (
            ApiKeyRule(kind="api_key", name="header:Authorization"),
            {"authorization": "Bearer sk-1"},
            {},
            "key-",
        ),
        (
            FieldRule(name="user", tenants={"u-1": "initech"}),
            {},
            {"user": "u-1"},
            "initech",
        ),
    ],
)
def test_tenants_come_from_fields_keys_and_mappings(
    engines: dict[str, HttpEngine],
    rule: FieldRule | ApiKeyRule,
    headers: dict[str, str],
    more: Body,
    tenant: str,
) -> None:
    with tapped(engines["vllm"].url, tenancy=TenancySettings(rules=(rule,))) as tap:
        httpx.post(tap.url + TEXT, json=body(TEXT, stream=False) | more, headers=headers)
        assert {one.tenant.startswith(tenant) for one in tap.records()} == {True}
        httpx.post(tap.url + TEXT, json=body(TEXT, stream=False))
        assert tap.records() == []
        assert tap.blind == {"unmapped": 1}


def test_tenants_get_salts_of_their_own(engines: dict[str, HttpEngine]) -> None:
    with tapped(
        engines["sglang"].url, engine_kind="sglang", isolate=("cache_salt", "session_id")
    ) as tap:
        for tenant, salt in (("acme", None), ("acme", None), ("globex", None), ("globex", "mine")):
            asked = body(TEXT, stream=False) | ({"cache_salt": salt} if salt else {})
            httpx.post(tap.url + TEXT, json=asked, headers={"x-tenant-id": tenant})
        sent = [asked for _, _, asked in engines["sglang"].received[-4:]]
    salts = [one["cache_salt"] for one in sent]
    assert salts[0] == salts[1]
    assert len(set(salts)) == 3
    assert not any("acme" in salt or "mine" in salt for salt in salts)
    assert [one["session_id"] for one in sent] == ["acme", "acme", "globex", "globex"]


def test_other_requests_pass_as_they_came(
    engines: dict[str, HttpEngine], taps: dict[str, Tapped]
) -> None:
    for path in ("/health", "/v1/models", "/version?a=b%2Fc", "/nowhere"):
        direct = httpx.get(engines["vllm"].url + path)
        through = httpx.get(taps["vllm"].url + path)
        assert (through.status_code, through.content) == (direct.status_code, direct.content)
    assert taps["vllm"].records() == []
