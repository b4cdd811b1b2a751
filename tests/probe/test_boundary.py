"""Lengths around the limits of the public incident: a pool of 681,280 tokens, a longer context."""

from detector.check.verdict import Verdict
from detector.sample.language import load_language
from tests.fakes.cluster.bugs import Bug
from tests.fakes.http_engine import EngineOptions, HttpEngine, http_engine
from tests.probe.kit import checks, probed

POOL, CONTEXT = 681_280, 1_048_576
LIMIT = POOL - 6
"""SGLang keeps one token each of context and pool, and five for the answer."""


def lengths(engine: HttpEngine) -> list[int]:
    """Return the lengths of the prompts that an engine was sent."""
    return [len(asked["input_ids"]) for _, _, asked in engine.received]


def test_the_lengths_of_the_incident_are_refused_and_a_stale_answer_is_found() -> None:
    options = EngineOptions(kind="sglang", pool_tokens=POOL, context_tokens=CONTEXT)
    with http_engine(load_language(), options) as engine:
        sound = probed(engine, only=("boundary", "canary-over-limit"))
        sent = set(lengths(engine))
        options.bugs.add(Bug.STALE_AFTER_REJECT)
        faulty = probed(engine, only=("boundary", "canary-over-limit"))
    assert sent >= {mark + step for mark in (POOL, CONTEXT) for step in (-1, 0, 1)}
    assert sent >= {LIMIT - 1, LIMIT, LIMIT + 1}
    assert sound.record.passed
    said = [one.said.found for one in sound.results if one.check == "boundary"]
    assert said[0] == f"{LIMIT - 1:,} tokens: answered with status 200 and 1 tokens"
    assert said[-1] == f"{CONTEXT + 1:,} tokens: refused with status 400"
    assert checks(faulty, Verdict.FAIL) == {"boundary", "canary-over-limit"}
    (found,) = {
        one.said.found for one in faulty.results if one.said.found.startswith("681,281 tokens")
    }
    assert found == (
        "681,281 tokens, and the limit is 681,274: answered with status 200 and 1 tokens"
    )


def test_a_configured_pool_that_no_engine_tells_is_tried_too() -> None:
    options = EngineOptions(kind="sglang", pool_tokens=4_096, context_tokens=8_192)
    with http_engine(load_language(), options) as engine:
        found = probed(engine, only=("boundary",), pool_tokens=2_048)
        assert set(lengths(engine)) >= {2_047, 2_048, 2_049}
    assert checks(found, Verdict.FAIL) == {"boundary"}
    said = [one.said.found for one in found.results if one.said.verdict is Verdict.FAIL]
    assert said[0].startswith("2,048 tokens, and the limit is 2,048: answered")


def test_an_engine_that_refuses_earlier_than_it_says_is_a_warning() -> None:
    options = EngineOptions(kind="vllm", pool_tokens=4_096, context_tokens=4_096)
    with http_engine(load_language(), options) as engine:
        engine.serving.margin_tokens = 100
        found = probed(engine, only=("boundary",))
    assert checks(found, Verdict.FAIL) == set()
    (warned,) = [one.said.found for one in found.results if one.said.verdict is Verdict.WARN]
    assert warned == "4,095 tokens: refused with status 400, though 4,096 is the limit"
