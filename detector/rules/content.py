"""Rules BW001 to BW003: somebody else's prompt or response in a response.

They are one family: one finding per sink request and source tenant, whichever rule fits best, so
that a replay, an eviction or another equally good source never makes a second finding.
"""

from dataclasses import dataclass

import msgspec
import xxhash

from detector.finding import Confidence, Evidence, Finding, Run, Severity, Thresholds, party_of
from detector.heartbeat import RULE as HEARTBEAT
from detector.heartbeat import is_reserved
from detector.kernels.bigrams import bigram_keys
from detector.kernels.overlap import jaccard
from detector.match.confidence import CONTENT_SEVERITY
from detector.match.verdict import Verdict
from detector.model import MAX_SEQUENCE_TOKENS, PART_OVERLAP, Kind, Sequence
from detector.sketch.shingle import SHINGLE_TOKENS

FAMILY = "content"
FOREIGN_PROMPT = "BW001"
FOREIGN_RESPONSE = "BW002"
DUPLICATED_RESPONSE = "BW003"

DUPLICATE_JACCARD = 0.5
"""Share of common bigrams from which a response counts as the other one, edited or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One sink, one source tenant: the best verdict with its source, and the equally good ones."""

    sink: Sequence
    source: Sequence
    verdict: Verdict
    others: tuple[Sequence, ...]


def finding_id(sink: Sequence, source_tenant: str) -> str:
    """Return the id of the one content finding of a sink request and a source tenant."""
    return finding_id_of(
        sink.kv_pool, sink.tenant, sink.request_id, sink.started_at_ms, source_tenant
    )


def finding_id_of(
    kv_pool: str, tenant: str, request_id: str, started_at_ms: int, source_tenant: str
) -> str:
    """Return that id where only the names of the sink request are known."""
    name = "\0".join((FAMILY, kv_pool, tenant, request_id, str(started_at_ms), source_tenant))
    return xxhash.xxh3_128_hexdigest(name.encode())


def content_finding(
    match: Match, *, confidence: Confidence, limits: Thresholds, now_ms: int
) -> Finding:
    """Build the finding for a match; `now_ms` is the event time of the decision."""
    sink, source, verdict = match.sink, match.source, match.verdict
    similarity = _similarity(match)
    rule = _rule(match, similarity)
    evidence = Evidence(
        runs=tuple(_in_request(run, match) for run in verdict.runs),
        matched_tokens=verdict.matched_tokens,
        unexplained_tokens=verdict.tokens,
        sink_tokens=len(sink.token_hashes),
        containment=round(verdict.matched_shingles / _shingles(sink), 3),
        rarity=verdict.rarity,
        reasons=verdict.reasons,
        thresholds=limits,
        similarity=round(similarity, 3) if rule == DUPLICATED_RESPONSE else None,
    )
    return Finding(
        id=finding_id(sink, source.tenant),
        rule=rule,
        severity=Severity.INFO if rule == HEARTBEAT else CONTENT_SEVERITY[confidence],
        confidence=confidence,
        kv_pool=sink.kv_pool,
        engine=sink.engine,
        model=sink.model,
        observed_at_ms=sink.ended_at_ms,
        detected_at_ms=now_ms,
        sink=party_of(sink),
        source=party_of(source),
        other_sources=tuple(party_of(other) for other in match.others),
        evidence=evidence,
        explanation=_sentence(match, rule),
    )


def _in_request(run: Run, match: Match) -> Run:
    """Return the run with offsets into the whole prompt or response, not into a part of it."""
    if not match.source.part and not match.sink.part:
        return run
    step = MAX_SEQUENCE_TOKENS - PART_OVERLAP
    return msgspec.structs.replace(
        run,
        source_start=run.source_start + match.source.part * step,
        sink_start=run.sink_start + match.sink.part * step,
    )


def _rule(match: Match, similarity: float) -> str:
    if is_reserved(match.sink.tenant) and is_reserved(match.source.tenant):
        return HEARTBEAT
    if match.source.kind is Kind.PROMPT:
        return FOREIGN_PROMPT
    if match.verdict.similarity is not None or similarity >= DUPLICATE_JACCARD:
        return DUPLICATED_RESPONSE
    return FOREIGN_RESPONSE


def _similarity(match: Match) -> float:
    """Return how alike two responses are as a whole, 0 where the source is a prompt."""
    if match.source.kind is Kind.PROMPT:
        return 0.0
    if match.verdict.similarity is not None:
        return match.verdict.similarity
    sides = (match.sink.token_hashes, match.source.token_hashes)
    return jaccard(*(bigram_keys(side) for side in sides))  # type: ignore[no-any-return]


def _shingles(sequence: Sequence) -> int:
    return max(len(sequence.token_hashes) - SHINGLE_TOKENS + 1, 1)


def _sentence(match: Match, rule: str) -> str:
    sink, source, tokens = match.sink, match.source, match.verdict.tokens
    if rule == HEARTBEAT:
        return f"A heartbeat of {sink.engine}: a synthetic bleed, found as any bleed is."
    seconds = (sink.started_at_ms - source.started_at_ms) / 1000
    when = f"{seconds:.0f} s earlier" if seconds >= 0 else f"{-seconds:.0f} s later"
    receiver = f"Tenant {sink.tenant} received in request {sink.request_id}"
    if match.verdict.similarity is not None:
        return (
            f"{receiver} an edited copy of the response of tenant {source.tenant} "
            f"(request {source.request_id}, started {when} on {sink.kv_pool}): no run of tokens is "
            f"left, but {match.verdict.similarity:.0%} of their bigrams are the same and nothing "
            "explains them."
        )
    if rule == DUPLICATED_RESPONSE:
        return (
            f"{receiver} the response of tenant {source.tenant} "
            f"(request {source.request_id}, started {when} on {sink.kv_pool}): "
            f"{tokens} consecutive tokens are the same and nothing explains them."
        )
    what = "prompt" if source.kind is Kind.PROMPT else "response"
    return (
        f"{receiver} {tokens} consecutive tokens of the {what} of tenant "
        f"{source.tenant} (request {source.request_id}, started {when} on {sink.kv_pool}), "
        f"and nothing explains them."
    )
