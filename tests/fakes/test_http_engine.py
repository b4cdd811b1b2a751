"""The fake engine answers as engines do, and each of its faults is there when switched on only."""

import json
from collections.abc import Iterator

import httpx
import pytest

from detector.sample.language import Language, load_language
from tests.fakes.cluster.bugs import Bug
from tests.fakes.http_bodies import Body
from tests.fakes.http_engine import MARGINS, EngineOptions, HttpEngine, http_engine

SMALL = 4_096


@pytest.fixture(scope="module")
def language() -> Language:
    return load_language()


@pytest.fixture(params=["vllm", "sglang"])
def engine(request: pytest.FixtureRequest, language: Language) -> Iterator[HttpEngine]:
    options = EngineOptions(kind=request.param, pool_tokens=SMALL, context_tokens=SMALL * 2)
    with http_engine(language, options) as made:
        yield made


def complete(engine: HttpEngine, prompt: object, **more: object) -> httpx.Response:
    body = {"model": "sim-8b", "prompt": prompt, "return_token_ids": True} | more
    return httpx.post(f"{engine.url}/v1/completions", json=body, timeout=30)


def story(language: Language, number: int, tokens: int) -> list[int]:
    """Return natural text that no other number shares."""
    passages = language.prose_passages[number * 40 : number * 40 + 40]
    return [token for passage in passages for token in passage][:tokens]


def events(answer: httpx.Response) -> list[Body]:
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def test_streamed_ids_are_those_of_the_whole_answer(engine: HttpEngine, language: Language) -> None:
    prompt = story(language, 0, 300)
    whole = complete(engine, prompt).json()["choices"][0]
    streamed = events(complete(engine, prompt, stream=True))
    ids = [token for event in streamed for token in event["choices"][0]["token_ids"]]
    text = "".join(event["choices"][0]["text"] for event in streamed)
    assert (ids, text) == (whole["token_ids"], whole["text"])
    assert streamed[0]["choices"][0]["prompt_token_ids"] == prompt
    assert streamed[-1]["choices"][0]["finish_reason"] == "stop"


def test_over_long_prompts_are_refused_at_the_limit(engine: HttpEngine, language: Language) -> None:
    limit = SMALL - MARGINS[engine.options.kind]
    passages = story(language, 0, 3_000) + story(language, 2, 3_000)
    assert complete(engine, passages[: limit - 1]).status_code == 200
    refused = complete(engine, passages[:limit])
    assert refused.status_code == 400
    assert str(limit) in refused.json()["error"]["message"]
    assert engine.serving.pool.used_tokens == 0


def test_a_client_that_goes_away_frees_its_pages(engine: HttpEngine, language: Language) -> None:
    used = _used_after_disconnect(engine, language)
    assert used == 0


def test_a_faulty_engine_keeps_them(engine: HttpEngine, language: Language) -> None:
    engine.options.bugs.add(Bug.UNRELEASED_AFTER_ABORT)
    assert _used_after_disconnect(engine, language) > 300


def test_stale_pages_make_foreign_text_surface(engine: HttpEngine, language: Language) -> None:
    fills = [story(language, number, 1_000) for number in range(5)]
    for fill in fills:
        complete(engine, fill, max_tokens=20)
    over = story(language, 6, 3_000) + story(language, 8, 3_000)
    assert complete(engine, over).status_code == 400
    engine.options.bugs.add(Bug.STALE_AFTER_REJECT)
    said = complete(engine, over, max_tokens=400, ignore_eos=True).json()
    assert said["usage"]["prompt_tokens"] == 1
    ids = said["choices"][0]["token_ids"]
    foreign = {tuple(fill[at : at + 16]) for fill in fills for at in range(len(fill) - 16)}
    assert any(tuple(ids[at : at + 16]) in foreign for at in range(len(ids) - 16))


def test_the_prefix_cache_keeps_salts_apart(engine: HttpEngine, language: Language) -> None:
    def cached(salt: str) -> int:
        said = complete(engine, prompt, cache_salt=salt).json()
        return int(said["usage"]["prompt_tokens_details"]["cached_tokens"])

    prompt = story(language, 0, 320)
    assert [cached("a"), cached("a"), cached("b")] == [0, 304, 0]
    engine.options.bugs.add(Bug.CACHE_KEY_WITHOUT_TENANT)
    assert [cached("a"), cached("b")] == [0, 304]


def test_chat_ids_come_in_the_place_of_each_engine(engine: HttpEngine) -> None:
    body: Body = {"model": "m", "messages": [{"role": "user", "content": "What is a socket?"}]}
    asked = {"return_token_ids": True, "return_output_ids_in_sglext": True}
    said = httpx.post(f"{engine.url}/v1/chat/completions", json=body | asked).json()
    choice = said["choices"][0]
    if engine.options.kind == "vllm":
        assert said["prompt_token_ids"]
        assert choice["token_ids"]
    else:
        assert choice["prompt_token_ids"]
        assert said["sglext"]["output_ids"] == [choice["response_token_ids"]]
        refused = httpx.post(f"{engine.url}/v1/chat/completions", json=body | asked | {"stream": 1})
        assert refused.status_code == 400


def test_a_fault_that_one_engine_cannot_have_is_refused(language: Language) -> None:
    options = EngineOptions(bugs={Bug.CONNECTOR_MIS_TRANSFER})
    with pytest.raises(ValueError, match="connector-mis-transfer"):
        HttpEngine(options, language)


def _used_after_disconnect(engine: HttpEngine, language: Language) -> int:
    engine.options.delay_s = 0.002
    body = {"prompt": story(language, 0, 300), "stream": True, "ignore_eos": True}
    body |= {"max_tokens": 3_000}
    with httpx.stream("POST", f"{engine.url}/v1/completions", json=body) as answer:
        for _ in answer.iter_lines():
            assert engine.serving.running
            break
    while engine.serving.running:
        httpx.get(f"{engine.url}/metrics")
    return engine.serving.pool.used_tokens
