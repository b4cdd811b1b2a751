"""Scores replays of labelled traffic: recall, false findings, true sources, delay, throughput.

Pure: findings, truth and counts in, one document of figures out. Every share is 0 to 1, or None
where there is nothing to divide by.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from detector.evaluation.outcome import Bleed, Outcome, outcomes
from detector.finding import Confidence, Finding, Severity

PER = 1_000_000
"""False findings are given per million responses."""

LONG_TOKENS = 16
"""From this run length on a bleed should be found with high confidence."""

DIGITS = 4
Figure = float | int | None
Row = dict[str, str | Figure]


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """What came out of one traffic: findings, and what they are to be divided by.

    `findings` may tell the same id again when later evidence is surer. `seconds` is what the
    detector took for `tokens`; `explained` counts matched shingles by the reason they are harmless.
    """

    findings: Sequence[Finding]
    requests: int
    responses: int
    tokens: int
    seconds: float
    explained: Mapping[str, int] = {}


def figures(
    *,
    clean: Replayed,
    planted: Replayed,
    truth: Iterable[Bleed],
    repeat: Replayed | None = None,
    repeat_truth: Iterable[Bleed] = (),
    raw_10gram_flagged: int | None = None,
    reading_seconds: float = 0.0,
) -> dict[str, object]:
    """Return the figures of an evaluation: single values first, then groups as lists of rows.

    `raw_10gram_flagged` is what plain matching flags in the clean traffic, see `raw_match`;
    `reading_seconds` what reading and hashing it took, which the throughput includes.
    """
    told = surest(clean.findings)
    results = outcomes(planted.findings, truth)
    again = outcomes(repeat.findings, repeat_truth) if repeat else []
    long = [result for result in results if result.bleed.tokens >= LONG_TOKENS]
    found = [result for result in results if result.found]
    delays = [result.delay_ms / 1000 for result in found]
    return {
        "requests": clean.requests,
        "clean_findings": len(told),
        "clean_findings_high": sum(f.confidence is Confidence.HIGH for f in told),
        "clean_findings_per_million_responses": _share(len(told) * PER, clean.responses),
        "raw_10gram_flagged": raw_10gram_flagged,
        "recall_all": _recall(results),
        "recall_16plus": _recall(long),
        "recall_16plus_high": _share(sum(r.found_high for r in long), len(long)),
        "recall_repeat": _recall(again),
        "right_source": _share(sum(r.right_source for r in found), len(found)),
        "detection_delay_seconds_p50": percentile(delays, 50),
        "detection_delay_seconds_p95": percentile(delays, 95),
        "tokens_per_second": _share(clean.tokens, clean.seconds + reading_seconds),
        "recall_by_length": recall_by(results, "length", lambda bleed: str(bleed.length)),
        "recall_by_kind": recall_by(results, "kind", lambda bleed: bleed.kind),
        "clean_by_confidence": _clean_by(told, "confidence", Confidence, clean.responses),
        "clean_by_severity": _clean_by(told, "severity", Severity, clean.responses),
        "clean_explained_shingles": dict(sorted(clean.explained.items())),
    }


def confidences(findings: Iterable[Finding]) -> dict[str, str | Figure]:
    """Return the number of findings in all and by confidence, the surest of every id counted."""
    told = surest(findings)
    counts: dict[str, str | Figure] = {"findings": len(told)}
    for level in Confidence:
        counts[str(level)] = sum(finding.confidence is level for finding in told)
    return counts


def surest(findings: Iterable[Finding]) -> list[Finding]:
    """Return one finding per id, the surest, in order of first appearance."""
    best: dict[str, Finding] = {}
    for finding in findings:
        known = best.get(finding.id)
        if known is None or _sureness(finding) > _sureness(known):
            best[finding.id] = finding
    return list(best.values())


def recall_by(results: Iterable[Outcome], name: str, of: Callable[[Bleed], str]) -> list[Row]:
    """Return one row per group of bleeds, shortest runs first."""
    groups: dict[str, list[Outcome]] = {}
    for result in sorted(results, key=lambda r: (isinstance(r.bleed.length, str), r.bleed.tokens)):
        groups.setdefault(of(result.bleed), []).append(result)
    return [
        {
            name: group,
            "bleeds": len(members),
            "found": sum(result.found for result in members),
            "found_high": sum(result.found_high for result in members),
            "recall": _recall(members),
        }
        for group, members in groups.items()
    ]


def percentile(values: Iterable[float], percent: int) -> float | None:
    """Return the nearest-rank percentile: the smallest value that `percent` % do not exceed."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


def _clean_by(
    told: Sequence[Finding], name: str, levels: type[Confidence] | type[Severity], responses: int
) -> list[Row]:
    counts = dict.fromkeys(levels, 0)
    for finding in told:
        counts[getattr(finding, name)] += 1
    return [
        {
            name: str(level),
            "findings": count,
            "per_million_responses": _share(count * PER, responses),
        }
        for level, count in counts.items()
    ]


def _sureness(finding: Finding) -> tuple[int, int]:
    return list(Confidence).index(finding.confidence), finding.evidence.unexplained_tokens


def _recall(results: Sequence[Outcome]) -> float | None:
    return _share(sum(result.found for result in results), len(results))


def _share(part: float, whole: float) -> float | None:
    return round(part / whole, DIGITS) if whole else None
