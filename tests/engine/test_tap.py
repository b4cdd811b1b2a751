"""A tap before a genuine vLLM: what clients see, and the ids that are kept of it."""

import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx
import pytest

from detector.model import Kind
from ingest.schema_records import SequenceRecord
from tests.engine.server import MODEL, Engine, make_model, served
from tests.engine.traffic import LONG_WORDS, TENANTS, WORDS
from tests.tap.kit import Tapped, hashes, tapped
from tests.tap.requests import CHAT, TEXT, Body
from tests.tap.test_relay import objects, told_ids

REQUESTS: Final = 200
PIECES: Final = 3
"""Events of a stream that a client reads before it goes away."""

CHANGING: Final = re.compile(
    rb'"(?:id|item_id|created|created_at|completed_at)":(?:"[^"]*"|[0-9.]+)'
)
"""Ids and times, which differ from one request to the next."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    folder: Path = tmp_path_factory.mktemp("tap")
    with served(make_model(folder / "model"), folder / "server.log") as made:
        yield made


@pytest.fixture(scope="module")
def tap(engine: Engine) -> Iterator[Tapped]:
    with tapped(engine.url) as made:
        yield made


def asked(chance: Random, number: int) -> tuple[str, Body]:
    """Return a path and a body; every kind of call comes with and without a stream."""
    words = " ".join(chance.choices(WORDS, k=30))
    body: Body = {"model": MODEL, "max_tokens": 8, "temperature": 0, "stream": number % 2 == 1}
    if number % 4 < 2:
        return CHAT, body | {"messages": [{"role": "user", "content": words}]}
    return TEXT, body | {"prompt": words}


def kept(tap: Tapped) -> dict[Kind, bytes]:
    """Return the hashes that were kept of the only request since the last look."""
    records = tap.records()
    assert all(isinstance(one, SequenceRecord) for one in records)
    return {one.kind: one.token_hashes for one in records if isinstance(one, SequenceRecord)}


def sent(url: str, path: str, body: Body, tenant: str) -> httpx.Response:
    return httpx.post(url + path, json=body, headers={"x-tenant-id": tenant}, timeout=120)


def left(url: str, path: str, body: Body, tenant: str) -> tuple[list[int], list[int]]:
    """Go away after some events of a stream; return the ids that had come."""
    heard = b""
    headers = {"x-tenant-id": tenant}
    with httpx.stream("POST", url + path, json=body, headers=headers, timeout=120) as answer:
        for piece in answer.iter_raw():
            heard += piece
            if heard.count(b"\n\n") >= PIECES:
                break
    whole = heard[: heard.rindex(b"\n\n") + 2]
    headers = {"content-type": "text/event-stream"}
    return told_ids(httpx.Response(200, content=whole, headers=headers))


def test_all_ids_of_200_requests_are_those_that_their_clients_know(tap: Tapped) -> None:
    chance = Random(11)
    for number in range(REQUESTS):
        path, body = asked(chance, number)
        tenant = TENANTS[number % len(TENANTS)]
        body["return_token_ids"] = True
        if number % 10 == 8:
            over_long = body | {"prompt": " ".join(WORDS * LONG_WORDS)}
            assert sent(tap.url, TEXT, over_long, tenant).status_code == 400
            assert [one.status for one in tap.records()] == [400]
            continue
        if number % 10 == 3:
            body |= {"max_tokens": 300, "ignore_eos": True}
            prompt, response = left(tap.url, path, body, tenant)
            found = kept(tap)
            assert found[Kind.RESPONSE].startswith(hashes(response))
        else:
            prompt, response = told_ids(sent(tap.url, path, body, tenant))
            found = kept(tap)
            assert found[Kind.RESPONSE] == hashes(response)
        assert response
        assert found[Kind.PROMPT] == hashes(prompt)
    assert tap.blind == {}


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize(
    "more", [{}, {"n": 2, "logprobs": True, "temperature": 0.7, "seed": 3}, {"include_usage": True}]
)
def test_answers_are_those_of_the_engine_itself(
    engine: Engine, tap: Tapped, number: int, more: dict[str, Any]
) -> None:
    path, body = asked(Random(number), number)
    if "include_usage" in more:
        more = {"stream_options": more} if body["stream"] else {}
    if path == TEXT and "logprobs" in more:
        more = more | {"logprobs": 2}
    direct, through = both(engine, tap, path, body | more)
    assert told(through) == told(direct)
    assert direct.headers.keys() == through.headers.keys()
    tap.records()


@pytest.mark.parametrize("stream", [False, True])
def test_responses_are_those_of_the_engine_itself(
    engine: Engine, tap: Tapped, *, stream: bool
) -> None:
    body = {"model": MODEL, "input": "import class", "max_output_tokens": 8, "stream": stream}
    body |= {"temperature": 0, "store": False}
    direct, through = both(engine, tap, "/v1/responses", body)
    assert steps(through) == steps(direct)
    assert set(kept(tap)) == {Kind.PROMPT, Kind.RESPONSE}


def both(
    engine: Engine, tap: Tapped, path: str, body: Body
) -> tuple[httpx.Response, httpx.Response]:
    """Ask without the tap and with it; a first request fills the cache for both.

    With a prompt from the cache an answer of a made-up model may differ in its last bits.
    """
    _, direct, through = (
        sent(url, path, body, "acme") for url in (engine.url, engine.url, tap.url)
    )
    assert direct.status_code == through.status_code == 200
    return direct, through


def plain(answer: httpx.Response) -> bytes:
    return CHANGING.sub(b"", answer.content)


def told(answer: httpx.Response) -> object:
    """Return what an answer says; the engine cuts a stream into events as its time allows."""
    if not answer.headers["content-type"].startswith("text/event-stream"):
        return plain(answer)
    assert answer.content.endswith(b"data: [DONE]\n\n")
    shapes: set[frozenset[str]] = set()
    said: dict[int, list[Any]] = {}
    for event in objects(answer):
        shapes.add(frozenset(event))
        for choice in event["choices"]:
            shapes.add(frozenset(choice))
            kept = said.setdefault(choice["index"], ["", 0, None])
            kept[0] += choice.get("text") or choice.get("delta", {}).get("content") or ""
            logprobs = choice.get("logprobs") or {}
            kept[1] += len(logprobs.get("content") or logprobs.get("tokens") or ())
            kept[2] = choice["finish_reason"] or kept[2]
            assert choice.get("token_ids") is None
            assert choice.get("prompt_token_ids") is None
        assert event.get("prompt_token_ids") is None
    return shapes, said


def steps(answer: httpx.Response) -> list[bytes]:
    """Return the events of a response without the pieces of its text, which time cuts."""
    content = re.sub(rb"(?:msg|rs|resp)_\w+|\"sequence_number\":\d+", b"", plain(answer))
    return [one for one in content.split(b"\n\n") if b".delta" not in one]
