"""Findings and a report to show, as a replay would return them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from detector.finding import (
    Confidence,
    Evidence,
    Finding,
    Party,
    Run,
    Severity,
    Thresholds,
)
from ingest.coverage import Coverage

SINK = Party(
    tenant="globex",
    request_id="req-77",
    kind="response",
    started_at_ms=1_800_000_060_000,
    ended_at_ms=1_800_000_065_000,
    prompt_tokens=120,
)
SOURCE = Party(
    tenant="acme",
    request_id="req-12",
    kind="prompt",
    started_at_ms=1_800_000_000_000,
    ended_at_ms=1_800_000_000_000,
)

LEARNED = Thresholds(low=10, medium=12, high=16, density_ratio=1.0, learning=False)


def evidence(thresholds: Thresholds = LEARNED) -> Evidence:
    """Return the evidence of a run of 40 tokens of which 31 are unexplained."""
    return Evidence(
        runs=(Run(source_start=5, sink_start=900, length=40, unexplained=31),),
        matched_tokens=40,
        unexplained_tokens=31,
        sink_tokens=1_000,
        containment=0.04,
        rarity=0.97,
        reasons={"own_prompt": 6, "common": 3},
        thresholds=thresholds,
    )


def finding(
    identifier: str = "3f9a1c2b4d5e6f708192a3b4c5d6e7f8",
    *,
    severity: Severity = Severity.HIGH,
    observed_at_ms: int | None = None,
    sink: Party = SINK,
    source: Party = SOURCE,
    others: tuple[Party, ...] = (),
    thresholds: Thresholds = LEARNED,
) -> Finding:
    """Return a content finding of high confidence unless told otherwise."""
    return Finding(
        id=identifier,
        rule="BW001",
        severity=severity,
        confidence=Confidence.LOW if thresholds.learning else Confidence.HIGH,
        kv_pool="pool-a",
        engine="engine-1",
        model="m",
        observed_at_ms=sink.ended_at_ms if observed_at_ms is None else observed_at_ms,
        detected_at_ms=sink.ended_at_ms,
        sink=sink,
        source=source,
        other_sources=others,
        evidence=evidence(thresholds),
        explanation=(
            f"The response to {sink.tenant} request {sink.request_id} repeats 31 tokens of the "
            f"prompt of {source.tenant} request {source.request_id}, and nothing explains them."
        ),
    )


@dataclass
class Replayed:
    """What a replay returns, filled by hand."""

    findings: Sequence[Finding] = ()
    coverage: Coverage = field(default_factory=Coverage)
    requests: int = 5_928
    responses: int = 5_928
    tokens: int = 3_390_000
    cpu_seconds: float = 2.0
    learning: bool = False
    late: int = 0
    clock_jumps: int = 0
    evicted_sequences: int = 0
    history: Coverage | None = None
    history_skipped: int = 0
