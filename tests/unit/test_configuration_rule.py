"""BW401: what engines report of their configuration is compared, and told once."""

from typing import Any

import pytest

from detector.finding import Confidence, Finding, Severity
from detector.rules.configuration import MAX_TOLD, ConfigurationRule
from detector.runtime.settings import RuntimeSettings
from detector.settings import WindowSettings
from detector.streaming.runtime_watch import RuntimeWatch
from ingest.broker import Message
from ingest.record_batches import pack_clear
from ingest.schema_records import EngineRole, RuntimeSample
from tests.unit.runtime_records import healthy, sample
from tests.unit.streams import TOPICS, Stream

SMALL, LARGE = 681_280, 1_048_576
"""Of the public incident: the prefill pool, and the context that decode has room for."""

PREFILL: dict[str, Any] = {
    "engine": "prefill-0",
    "role": EngineRole.PREFILL,
    "context_tokens": LARGE,
}
DECODE: dict[str, Any] = {"engine": "decode-0", "role": EngineRole.DECODE, "context_tokens": LARGE}


def rule() -> ConfigurationRule:
    return ConfigurationRule("p", gap_ms=300_000)


def told(samples: list[RuntimeSample], by: ConfigurationRule | None = None) -> list[Finding]:
    by = by or rule()
    return [found for one in samples for found in by.sample(one)]


def pair(
    *at_s: float, prefill: int = SMALL, decode: int = LARGE, **more: Any
) -> list[RuntimeSample]:
    """Return the samples of a pair whose pools have these sizes."""
    return [
        one
        for at in at_s
        for one in (
            sample(at, **DECODE, pool_tokens=decode, **more),
            sample(at, **PREFILL, pool_tokens=prefill, **more),
        )
    ]


def test_the_pair_of_the_public_incident_is_told_once() -> None:
    assert told(pair(0)) == []
    (finding,) = told(pair(*range(0, 3_600, 15)))
    assert (finding.rule, finding.severity) == ("BW401", Severity.MEDIUM)
    assert (finding.engine, finding.confidence) == ("prefill-0", Confidence.HIGH)
    assert finding.observed_at_ms == 15_000
    assert "from 681,274 tokens on" in finding.explanation
    assert "decode-0 of its pool from 1,048,570" in finding.explanation
    assert finding.runtime == {"smaller_tokens": "681,274", "larger_tokens": "1,048,570"}
    assert not finding.is_content


@pytest.mark.parametrize(
    ("prefill", "decode", "is_told"),
    [
        (SMALL, SMALL, False),
        (SMALL, SMALL - 1, False),
        (SMALL, SMALL + 1, True),
        (2 * LARGE, 3 * LARGE, False),  # the context is the limit of both
    ],
)
def test_it_fires_where_decode_takes_one_token_more(
    prefill: int, decode: int, is_told: bool
) -> None:
    assert bool(told(pair(0, 15, prefill=prefill, decode=decode))) is is_told


def test_a_limit_that_is_told_counts_before_one_that_follows_from_sizes() -> None:
    samples = [
        *(sample(at, **DECODE, max_input_tokens=500_000) for at in (0, 15)),
        *(sample(at, **PREFILL, pool_tokens=SMALL, max_input_tokens=500_000) for at in (0, 15)),
    ]
    assert told(samples) == []
    del samples[2:]
    samples += [sample(at, **PREFILL, pool_tokens=500_005) for at in (0, 15)]
    (finding,) = told(samples)
    assert finding.runtime == {"smaller_tokens": "499,999", "larger_tokens": "500,000"}


def test_vllm_goes_by_its_context_and_is_less_sure() -> None:
    samples = [
        *(sample(at, **(DECODE | {"engine_kind": "vllm"})) for at in (0, 15)),
        *(
            sample(at, **(PREFILL | {"engine_kind": "vllm", "context_tokens": 32_768}))
            for at in (0, 15)
        ),
    ]
    (finding,) = told(samples)
    assert finding.confidence is Confidence.MEDIUM
    assert finding.runtime == {"smaller_tokens": "32,768", "larger_tokens": "1,048,576"}


def test_only_what_two_scrapes_say_counts() -> None:
    bad = sample(15, **DECODE, pool_tokens=LARGE)
    samples = pair(0, 5, 10, decode=SMALL)
    samples += [bad, *pair(20, 25, decode=SMALL), *pair(30, 35, 40, decode=SMALL)]
    assert told(samples) == []


def test_ranks_of_one_scrape_and_old_samples_say_nothing_twice() -> None:
    assert told([*pair(0), *pair(0), *pair(0)]) == []
    assert told([*pair(15), *pair(0), *pair(15)]) == []


def test_engines_that_are_alone_or_silent_or_of_another_role_are_not_compared() -> None:
    assert told([one for one in pair(0, 15, 30) if one.role == EngineRole.PREFILL]) == []
    decode = [one for one in pair(0, 15) if one.role == EngineRole.DECODE]
    prefill = [one for one in pair(400, 415) if one.role == EngineRole.PREFILL]
    assert told([*decode, *prefill]) == []
    both = [sample(at, **(DECODE | {"role": EngineRole.BOTH}), pool_tokens=LARGE) for at in (0, 15)]
    assert told([*both, *pair(0, 15, decode=SMALL)]) == []


def test_each_prefill_engine_is_told_and_new_numbers_are_told_again() -> None:
    by = rule()
    second = [
        sample(at, **(PREFILL | {"engine": "prefill-1"}), pool_tokens=SMALL) for at in (20, 35)
    ]
    first = told([*pair(0, 15, 30), *second], by)
    assert [one.engine for one in first] == ["prefill-0", "prefill-1"]
    (again,) = told(pair(60, 75, prefill=SMALL + 64), by)
    assert again.id != first[0].id
    assert told(pair(90, 105), by) == []  # told before, with these numbers
    assert told(pair(0, 15))[0].id == first[0].id  # a restarted worker makes the same finding


def test_a_pool_that_is_smaller_than_configured_is_told_beyond_whole_pages() -> None:
    sizes = {"pool_tokens": 500_000, "context_tokens": 131_072}
    assert told([healthy(at, configured_pool_tokens=500_063) for at in (0, 15)]) == []
    assert told([healthy(at, configured_pool_tokens=400_000) for at in (0, 15)]) == []
    (finding,) = told([sample(at, **sizes, configured_pool_tokens=600_000) for at in (0, 15)])
    assert "runs with 500,000 tokens, 600,000 are configured" in finding.explanation
    assert finding.engine == "e"


def test_an_engine_that_accepts_what_it_cannot_hold_is_told() -> None:
    assert told([healthy(at) for at in range(0, 3_600, 15)]) == []
    (above,) = told([healthy(at, max_input_tokens=131_073) for at in (0, 15)])
    assert "its context has 131,072" in above.explanation
    (above,) = told([sample(at, max_input_tokens=11, pool_tokens=10, rank=3) for at in (0, 15)])
    assert "its KV pool has 10" in above.explanation
    assert above.runtime == {"smaller_tokens": "10", "larger_tokens": "11", "rank": "3"}


def test_what_is_not_told_is_unknown() -> None:
    assert told([sample(at) for at in (0, 15, 30)]) == []
    unknown = [
        one
        for at in (0, 15, 30)
        for one in (
            sample(at, **(DECODE | {"context_tokens": None}), pool_tokens=LARGE),
            sample(at, **(PREFILL | {"context_tokens": None}), pool_tokens=SMALL),
        )
    ]
    assert told(unknown) == []


def test_what_is_remembered_is_bounded() -> None:
    by = rule()
    for number in range(2 * MAX_TOLD):
        sizes = {"max_input_tokens": 10_000 + number, "pool_tokens": 10}
        assert told([sample(number, **sizes), sample(number + 0.5, **sizes)], by)
    sizes = {"max_input_tokens": 10_000, "pool_tokens": 10}
    assert told([sample(9_000, **sizes), sample(9_001, **sizes)], by)


def test_pools_are_kept_apart() -> None:
    watch = RuntimeWatch(RuntimeSettings(), WindowSettings())
    findings = [
        found
        for at in (0, 15, 30)
        for one in (
            sample(at, **DECODE, pool_tokens=LARGE, kv_pool="q"),
            sample(at, **PREFILL, pool_tokens=LARGE - 10),
        )
        for found in watch.sample(one, is_news=True)
    ]
    findings += watch.idle()
    assert [one.rule for one in findings] == ["BW206"]


def test_a_worker_tells_it_before_any_traffic() -> None:
    stream = Stream()
    runner = stream.runner()
    runner.start()
    for at in (0, 15, 30, 45):
        batch = pack_clear(pair(at))
        stream.send_raw(Message(TOPICS.runtime, batch, b"p"), at_ms=at * 1000)
        runner.turn()
    runner.finish()
    assert sorted(one.rule for one in stream.findings()) == ["BW206", "BW401"]
