"""The score of a replay: what counts as found, as right, as clean."""

import msgspec
import pytest

from detector.evaluation.outcome import Bleed, outcomes
from detector.evaluation.score import Replayed, figures, percentile, surest
from detector.finding import Confidence, Evidence, Finding, Party, Severity, Thresholds


def party(tenant: str, request: str) -> Party:
    return Party(
        tenant=tenant, request_id=request, kind="response", started_at_ms=0, ended_at_ms=4000
    )


def finding(
    victim: str, source: str, tenant: str = "a", *, confidence: Confidence = Confidence.HIGH,
    others: tuple[str, ...] = (), detected: int = 5000, tokens: int = 20,
) -> Finding:  # fmt: skip
    limits = Thresholds(low=10, medium=12, high=16, density_ratio=1.0, learning=False)
    evidence = Evidence(
        runs=(), matched_tokens=tokens, unexplained_tokens=tokens, sink_tokens=100,
        containment=0.1, rarity=1.0, reasons={}, thresholds=limits,
    )  # fmt: skip
    return Finding(
        id=f"{victim}/{tenant}", rule="BW001", severity=Severity(confidence.value),
        confidence=confidence, kv_pool="p", engine="e", model="m", observed_at_ms=4000,
        detected_at_ms=detected, sink=party("v", victim), source=party(tenant, source),
        other_sources=tuple(party(tenant, other) for other in others), evidence=evidence,
        explanation="",
    )  # fmt: skip


def bleed(victim: str, source: str, length: int | str = 16, **more: object) -> Bleed:
    row = {"victim_request_id": victim, "source_request_id": source, "source_tenant": "a"}
    return msgspec.convert(row | {"kind": "start", "L": length, "node": "n"} | more, Bleed)


def replayed(*findings: Finding, requests: int = 1000) -> Replayed:
    return Replayed(
        findings=findings, requests=requests, responses=requests, tokens=5_000_000, seconds=2.0
    )


def test_a_bleed_is_found_by_victim_and_tenant_and_right_by_request() -> None:
    told = [finding("v1", "s1"), finding("v2", "x", others=("s2",)), finding("v3", "x")]
    told += [finding("v4", "s4", tenant="other")]
    truth = [bleed(f"v{n}", f"s{n}") for n in range(1, 6)]
    results = outcomes(told, truth)
    assert [r.found for r in results] == [True, True, True, False, False]
    assert [r.right_source for r in results] == [True, True, False, False, False]


def test_the_single_figures() -> None:
    truth = [bleed("v1", "s1", 10), bleed("v2", "s2", 16), bleed("v3", "s3", "full", run_tokens=90)]
    told = [finding("v1", "s1", confidence=Confidence.LOW), finding("v2", "x"), finding("v9", "z")]
    again = [bleed("r1", "s1", 48), bleed("r2", "s1", 48)]
    result = figures(
        clean=replayed(finding("c", "d", confidence=Confidence.LOW)), planted=replayed(*told),
        truth=truth, repeat=replayed(finding("r1", "s1")), repeat_truth=again,
        raw_10gram_flagged=7,
    )  # fmt: skip
    expected = {
        "requests": 1000, "clean_findings": 1, "clean_findings_high": 0,
        "clean_findings_per_million_responses": 1000.0, "raw_10gram_flagged": 7,
        "recall_all": 0.6667, "recall_16plus": 0.5, "recall_16plus_high": 0.5,
        "recall_repeat": 0.5, "right_source": 0.5, "detection_delay_seconds_p50": 1.0,
        "detection_delay_seconds_p95": 1.0, "tokens_per_second": 2_500_000.0,
    }  # fmt: skip
    assert {name: result[name] for name in expected} == expected
    assert msgspec.json.decode(msgspec.json.encode(result)) == result


def test_the_groups() -> None:
    truth = [bleed("v3", "s", "full", run_tokens=12), bleed("v2", "s", 128), bleed("v1", "s", 16)]
    clean = replayed(finding("c", "d", confidence=Confidence.MEDIUM))
    result = figures(clean=clean, planted=replayed(finding("v1", "s")), truth=truth)
    rows = result["recall_by_length"]
    assert rows == [
        {"length": "16", "bleeds": 1, "found": 1, "found_high": 1, "recall": 1.0},
        {"length": "128", "bleeds": 1, "found": 0, "found_high": 0, "recall": 0.0},
        {"length": "full", "bleeds": 1, "found": 0, "found_high": 0, "recall": 0.0},
    ]
    assert result["clean_by_confidence"] == [
        {"confidence": "low", "findings": 0, "per_million_responses": 0.0},
        {"confidence": "medium", "findings": 1, "per_million_responses": 1000.0},
        {"confidence": "high", "findings": 0, "per_million_responses": 0.0},
    ]


def test_a_finding_told_twice_counts_once_as_the_surer() -> None:
    first = finding("v", "s", confidence=Confidence.LOW, detected=4500, tokens=11)
    second = finding("v", "s", detected=9000)
    assert surest([first, second]) == [second]
    assert surest([second, first]) == [second]
    (result,) = outcomes([first, second], [bleed("v", "s")])
    assert result.found_high
    assert result.delay_ms == 500


def test_nothing_measured_is_none_not_zero() -> None:
    empty = Replayed(findings=(), requests=0, responses=0, tokens=0, seconds=0.0)
    result = figures(clean=empty, planted=empty, truth=())
    for name in ("recall_all", "recall_repeat", "right_source", "tokens_per_second"):
        assert result[name] is None
    assert result["detection_delay_seconds_p95"] is None


@pytest.mark.parametrize(("percent", "expected"), [(0, 1), (50, 2), (75, 3), (95, 4), (100, 4)])
def test_percentile_is_the_nearest_rank(percent: int, expected: int) -> None:
    assert percentile([4, 2, 1, 3], percent) == expected


def test_a_length_that_is_a_word_is_told_by_the_victims_positions() -> None:
    row = b'{"victim_request_id":"v","source_request_id":"s","source_tenant":"t","kind":"k",'
    row += b'"L":"full","victim_start":5,"victim_end":95}'
    assert msgspec.json.decode(row, type=Bleed).tokens == 90
