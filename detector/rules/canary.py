"""Rule BW301: a canary that a probe planted as one tenant came back in an answer to another."""

from typing import Final, NamedTuple

import xxhash

from detector.finding import Confidence, Evidence, Finding, Party, Run, Severity, Thresholds

CANARY_ECHOED: Final = "BW301"

SOURCE_TENANT: Final = "probe-a"
SINK_TENANT: Final = "probe-b"

_THRESHOLD: Final = 6
"""Consecutive tokens of a random canary that cannot be chance."""


class Surfacing(NamedTuple):
    """One answer that held canaries: during which check, and where, as (offset, length)."""

    check: str
    request_id: str
    prompt_tokens: int
    answer_tokens: int
    runs: tuple[tuple[int, int], ...]


def canary_echoed(one: Surfacing, *, engine: str, started_at_ms: int, ended_at_ms: int) -> Finding:
    """Return the finding of one answer; the times are those of the whole probe.

    The source's positions are not told: a canary is repeated, so they mean nothing.
    """
    total = sum(length for _, length in one.runs)
    name = "\0".join((CANARY_ECHOED, engine, str(started_at_ms), one.check, one.request_id))
    runs = tuple(
        Run(source_start=0, sink_start=start, length=length, unexplained=length)
        for start, length in one.runs
    )
    source = Party(
        tenant=SOURCE_TENANT, request_id="", kind="prompt",
        started_at_ms=started_at_ms, ended_at_ms=ended_at_ms,
    )  # fmt: skip
    sink = Party(
        tenant=SINK_TENANT, request_id=one.request_id, kind="response",
        started_at_ms=started_at_ms, ended_at_ms=ended_at_ms, prompt_tokens=one.prompt_tokens,
    )  # fmt: skip
    bounds = Thresholds(
        low=_THRESHOLD, medium=_THRESHOLD, high=_THRESHOLD, density_ratio=1.0, learning=False
    )
    return Finding(
        id=xxhash.xxh3_128_hexdigest(name.encode()), rule=CANARY_ECHOED, severity=Severity.HIGH,
        confidence=Confidence.HIGH, kv_pool=engine, engine=engine, model="",
        observed_at_ms=ended_at_ms, detected_at_ms=ended_at_ms, sink=sink, source=source,
        other_sources=(),
        evidence=Evidence(
            runs=runs, matched_tokens=total, unexplained_tokens=total,
            sink_tokens=one.answer_tokens, containment=min(1.0, total / one.answer_tokens),
            rarity=1.0, reasons={}, thresholds=bounds,
        ),
        explanation=f"{total} of {one.answer_tokens} tokens of an answer to tenant {SINK_TENANT} "
        f"are a canary that the probe had planted as tenant {SOURCE_TENANT}: {engine} reads "
        f"memory of other tenants (check {one.check}).",
        runtime={"check": one.check},
    )  # fmt: skip
