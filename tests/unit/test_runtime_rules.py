"""Rules BW201 to BW207: each fires at its threshold, not just below it, and once."""

from collections.abc import Iterable

import pytest

from detector.finding import Confidence, Finding, Severity
from detector.rules.runtime import EngineRules
from detector.runtime.records import SIGNAL_OF
from detector.runtime.settings import RuntimeSettings
from ingest.schema_records import EngineEvent, EventKind, RuntimeSample
from tests.unit.runtime_records import event, healthy, sample

SCRAPE_S = 5


def found(reports: Iterable[RuntimeSample | EngineEvent]) -> list[Finding]:
    rules = EngineRules(RuntimeSettings(), kv_pool="p", engine="e")
    told: list[Finding] = []
    for one in reports:
        noted = rules.sample(one) if isinstance(one, RuntimeSample) else rules.event(one)
        told += noted.findings
    return told


def rules_of(findings: Iterable[Finding]) -> list[str]:
    return [one.rule for one in findings]


def held(
    tokens: int, seconds: int, quality: str = "exact", running: int = 0
) -> list[RuntimeSample]:
    return [
        sample(
            at, pool_tokens=500_000, running_requests=running, unreleased_tokens=tokens,
            unreleased_quality=quality,
        )
        for at in range(0, seconds + 1, SCRAPE_S)
    ]  # fmt: skip


def filled(ratio: float, seconds: int, *, since: int = 0) -> list[RuntimeSample]:
    times = range(since, since + seconds + 1, SCRAPE_S)
    return [sample(at, pool_usage_ratio=ratio, pool_tokens=500_000) for at in times]


def test_a_healthy_day_is_silent() -> None:
    assert not found(healthy(at) for at in range(0, 86_400, SCRAPE_S))


def test_unreleased_memory_is_told_by_exact_figures_after_a_minute() -> None:
    (one,) = found(held(5_001, 600))
    assert (one.rule, one.severity, one.confidence) == ("BW201", Severity.MEDIUM, Confidence.HIGH)
    assert one.observed_at_ms == 60_000
    assert "5,001 tokens" in one.explanation
    assert one.runtime == {"unreleased_tokens": "5,001", "pool_tokens": "500,000"}


def test_an_estimate_must_last_longer() -> None:
    (one,) = found(held(5_001, 600, "estimate"))
    assert (one.confidence, one.observed_at_ms) == (Confidence.MEDIUM, 300_000)


@pytest.mark.parametrize(
    "samples",
    [held(5_000, 600), held(5_001, 55), held(5_001, 600, "unknown"), held(5_001, 600, running=1)],
    ids=["a hundredth of the pool", "too short", "unknown", "something runs"],
)
def test_what_is_no_unreleased_memory(samples: list[RuntimeSample]) -> None:
    assert not found(samples)


def test_unreleased_memory_of_an_unknown_pool_needs_a_thousand_tokens() -> None:
    def of(tokens: int) -> list[RuntimeSample]:
        known = {"running_requests": 0, "unreleased_quality": "exact"}
        return [sample(at, unreleased_tokens=tokens, **known) for at in range(0, 90, SCRAPE_S)]

    assert not found(of(1_024))
    assert rules_of(found(of(1_025))) == ["BW201"]


def test_a_leak_that_lasts_while_requests_come_and_go_is_told_once() -> None:
    samples = [
        sample(
            at, running_requests=int(at % 200 > 100), unreleased_tokens=9_000,
            unreleased_quality="exact",
        )
        for at in range(0, 3_600, SCRAPE_S)
    ]  # fmt: skip
    assert rules_of(found(samples)) == ["BW201"]


def test_an_engine_that_finds_a_leak_itself_is_believed_at_once() -> None:
    assert rules_of(found([event(EventKind.LEAK_DETECTED, 1)])) == ["BW201"]


@pytest.mark.parametrize(
    ("kind", "rule"),
    [
        (EventKind.CLEAR_FAILED, "BW202"),
        (EventKind.DEFERRED_RELEASE_TIMEOUT, "BW202"),
        (EventKind.DOUBLE_FREE, "BW202"),
        (EventKind.METADATA_MISMATCH, "BW203"),
        (EventKind.CHECKSUM_MISMATCH, "BW203"),
        (EventKind.KV_CANARY, "BW203"),
    ],
)
def test_one_failed_clear_or_mismatch_is_enough(kind: EventKind, rule: str) -> None:
    (one,) = found([event(kind, 1), event(kind, 200)])
    assert (one.rule, one.severity, one.observed_at_ms) == (rule, Severity.HIGH, 1_000)


def test_the_kinds_that_are_evidence_are_kinds_of_the_wire() -> None:
    assert set(SIGNAL_OF) < {kind.value for kind in EventKind}


def test_other_events_say_nothing() -> None:
    kinds = [kind for kind in EventKind if kind not in SIGNAL_OF]
    assert not found(event(kind, at) for at, kind in enumerate(kinds * 20))


@pytest.mark.parametrize(
    ("counter", "rule"),
    [("clear_failures_total", "BW202"), ("metadata_mismatches_total", "BW203")],
)
def test_a_counter_is_read_as_its_increase(counter: str, rule: str) -> None:
    values = [4, 4, None, 4, 5, 5]
    (one,) = found(healthy(at * 5, **{counter: value}) for at, value in enumerate(values))
    assert (one.rule, one.observed_at_ms) == (rule, 20_000)
    restarted = [healthy(at * 5, **{counter: value}) for at, value in enumerate([4, 0, 0])]
    assert not found(restarted)


def test_failures_told_by_log_and_metrics_are_one_episode() -> None:
    reports: list[RuntimeSample | EngineEvent] = [
        healthy(0), event(EventKind.CLEAR_FAILED, 3), healthy(5, clear_failures_total=1),
        healthy(10, clear_failures_total=1),
    ]  # fmt: skip
    assert rules_of(found(reports)) == ["BW202"]


def test_single_failed_transfers_are_normal_and_a_burst_is_not() -> None:
    kind = EventKind.TRANSFER_FAILED
    assert not found(event(kind, at) for at in range(0, 3_600, 75))
    told = found(event(kind, at) for at in range(0, 3_600, 74))
    assert rules_of(told) == ["BW204"]
    assert told[0].severity is Severity.MEDIUM


def test_a_full_pool_is_told_when_it_lasts() -> None:
    (one,) = found(filled(0.91, 600))
    assert (one.rule, one.observed_at_ms) == ("BW205", 60_000)
    assert not found(filled(0.9, 600))
    assert not found(filled(0.91, 55))


def test_pressure_that_sways_is_one_finding_and_a_relapse_another() -> None:
    swaying = [one for at in range(0, 600, 100) for one in filled(0.95, 70, since=at)]
    swaying += filled(0.87, 20, since=75)
    swaying.sort(key=lambda one: one.sampled_at_ms)
    assert rules_of(found(swaying)) == ["BW205"]
    relapse = [*filled(0.95, 70), *filled(0.5, 20, since=75), *filled(0.95, 70, since=100)]
    told = found(relapse)
    assert rules_of(told) == ["BW205", "BW205"]
    assert told[0].id != told[1].id


def test_a_pool_below_the_context_is_told_with_the_second_scrape() -> None:
    small = {"pool_tokens": 681_280, "context_tokens": 1_048_576}
    (one,) = found(sample(at, **small) for at in (0, 5, 10))
    assert (one.rule, one.observed_at_ms) == ("BW206", 5_000)
    assert "681,280" in one.explanation
    assert not found([sample(0, **small)])
    assert not found(sample(at, pool_tokens=1_000, context_tokens=1_000) for at in (0, 5))
    assert not found(sample(at, pool_tokens=1_000) for at in (0, 5))


def test_each_rank_has_a_pool_of_its_own() -> None:
    small = {"pool_tokens": 10, "context_tokens": 20}
    told = found(sample(at, rank=rank, **small) for at in (0, 5) for rank in (0, 1))
    assert rules_of(told) == ["BW206", "BW206"]
    assert len({one.id for one in told}) == 2


def burst(count: int, tenants: int, *, shingles: int = 128, low: int = 64) -> list[str]:
    rules = EngineRules(RuntimeSettings(), kv_pool="p", engine="e")
    told = [
        rules.response(at * 1_000, f"t{at % tenants}", shingles=shingles, low_complexity=low)
        for at in range(count)
    ]
    return [one.rule for one in told if one is not None]


def test_a_burst_of_loops_of_several_tenants_is_told() -> None:
    assert burst(5, 2) == burst(50, 2) == ["BW207"]
    assert burst(4, 2) == burst(50, 1) == []
    assert burst(50, 2, shingles=129) == burst(50, 2, low=63) == []
