"""The steps of an explanation as plain sentences, each true of the finding record alone."""

from collections.abc import Iterator
from datetime import UTC, datetime

from detector.cli.words import counted
from detector.finding import Confidence, Finding, Party, Run, Thresholds
from detector.match.sentences import sentence

Step = tuple[str, list[str], tuple[Run, ...]]
"""A title, sentences, and the runs to list below them (or none)."""

EARLIEST_CALENDAR_MS = 100_000_000_000
"""Times below this (1973) are a file's own relative time, not the calendar."""

TIES_SHOWN = 5


def steps(finding: Finding) -> Iterator[Step]:
    """Yield the steps in the order in which the detector decided."""
    evidence = finding.evidence
    yield "Who received it (sink)", _party(finding.sink, tokens=evidence.sink_tokens), ()
    yield "Whose content it is (source)", [*_party(finding.source), _distance(finding)], ()
    yield "What is the same", _overlap(finding), evidence.runs
    yield "What was subtracted, and why", _subtracted(finding), ()
    yield "What decided", _decision(finding), ()
    yield "How telling the rest is", _weight(finding), ()
    if finding.other_sources:
        yield "Other sources that fit equally well", _ties(finding.other_sources), ()
    if finding.runtime:
        yield (
            "What the engine reported meanwhile",
            [f"{name}: {value}" for name, value in finding.runtime.items()],
            (),
        )


def when(at_ms: int) -> str:
    """Return an instant as RFC 3339 UTC, or as seconds when the time is a file's own."""
    if at_ms < EARLIEST_CALENDAR_MS:
        return f"{at_ms / 1000:+,.3f} s"
    try:
        moment = datetime.fromtimestamp(at_ms / 1000, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _party(party: Party, *, tokens: int | None = None) -> list[str]:
    length = f", {counted(tokens, 'token')}" if tokens is not None else ""
    asked = party.prompt_tokens
    prompt = f", {counted(asked, 'prompt token')}" if asked is not None else ""
    return [
        f"tenant {party.tenant}, request {party.request_id}: its {party.kind}{length}{prompt}",
        _span(party.started_at_ms, party.ended_at_ms),
    ]


def _span(start_ms: int, end_ms: int) -> str:
    if start_ms == end_ms:  # a prompt is there at once
        return f"at {when(start_ms)}"
    return f"from {when(start_ms)} to {when(end_ms)}"


def _distance(finding: Finding) -> str:
    seconds = (finding.sink.started_at_ms - finding.source.started_at_ms) / 1000
    order = "before" if seconds >= 0 else "after"
    return (
        f"it started {abs(seconds):,.1f} s {order} the sink's request, in KV pool "
        f"{finding.kv_pool} (engine {finding.engine}, model {finding.model or 'unknown'})"
    )


def _overlap(finding: Finding) -> list[str]:
    evidence = finding.evidence
    alike = [] if evidence.similarity is None else [_alike(evidence.similarity)]
    matched = counted(evidence.matched_tokens, "token")
    if not evidence.runs:
        return [f"{matched} in common bigrams; no run of 10 is left unexplained", *alike]
    runs = counted(len(evidence.runs), "run")
    return [f"{matched} in {runs} of at least 10; small gaps are bridged but do not count", *alike]


def _alike(similarity: float) -> str:
    return (
        f"similarity {similarity:.1%}: the share of all bigrams (two neighbouring tokens) of the "
        "two responses that both have; from 50% on it is the whole response"
    )


def _subtracted(finding: Finding) -> list[str]:
    reasons = sorted(finding.evidence.reasons.items(), key=lambda item: -item[1])
    lines = [
        f"{counted(count, 'shingle')} ({name.replace('_', ' ')}): {sentence(name)}"
        for name, count in reasons
        if count
    ]
    unexplained = counted(finding.evidence.unexplained_tokens, "token is", "tokens are")
    left = f"{unexplained} left that nothing explains"
    return [*(lines or ["nothing: no explanation fits any part of it"]), left]


def _decision(finding: Finding) -> list[str]:
    limits, tokens = finding.evidence.thresholds, finding.evidence.unexplained_tokens
    if not finding.evidence.runs:
        return ["an edited copy: without a run it is medium at most", *_learning(limits)]
    lines = [
        f"{counted(tokens, 'unexplained token')} against low {limits.low}, medium {limits.medium}, "
        f"high {limits.high}: confidence {finding.confidence.value}"
    ]
    if limits.density_ratio > 1:
        lines.append(
            f"the pool was {limits.density_ratio:g} times as busy as the reference, which raises "
            "the high threshold: the more traffic, the longer a chance overlap"
        )
    lines += _learning(limits)
    if limits.learning:
        return lines
    if finding.confidence is not Confidence.HIGH and tokens >= limits.high:
        lines.append("the length alone would make it high; the rule holds it lower")
    return lines


def _learning(limits: Thresholds) -> list[str]:
    told = "the detector was still learning what is common, so confidence is capped at low"
    return [told] if limits.learning else []


def _weight(finding: Finding) -> list[str]:
    evidence = finding.evidence
    held = (
        f"containment {evidence.containment:.1%}: the share of the whole response's shingles that "
        "the source also holds"
    )
    if not evidence.runs:
        return [held]
    return [
        held,
        f"rarity {evidence.rarity:.1%}: the share of the longest run, as far as it is remembered, "
        "that no other tenant was ever seen with",
    ]


def _ties(others: tuple[Party, ...]) -> list[str]:
    lines = [
        f"tenant {party.tenant}, request {party.request_id} "
        f"({party.kind}, {when(party.started_at_ms)})"
        for party in others[:TIES_SHOWN]
    ]
    more = len(others) - len(lines)
    return [*lines, f"and {more:,} more"] if more else lines
