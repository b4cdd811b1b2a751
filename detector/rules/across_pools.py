"""Rule BW003 across pools: a response of one pool that is another party's of another pool.

It was found by sketches, so evidence holds estimates: no runs, and confidence is medium at most.
"""

from detector.finding import Evidence, Finding, Party, Thresholds
from detector.index.response_sketch import BIGRAMS, ResponseSketch
from detector.match.across_pools import Copy
from detector.match.confidence import CONTENT_SEVERITY, confidence
from detector.model import Kind
from detector.rules.content import DUPLICATED_RESPONSE, finding_id_of


def copy_finding(copy: Copy, limits: Thresholds, *, now_ms: int) -> Finding | None:
    """Build the finding for a copy, None below the lowest threshold; `now_ms` is event time."""
    sink, source = copy.sink, copy.sources[0]
    tokens = round(sink.tokens * sink.unexplained / max(sink.bigrams, 1) * copy.containment)
    sure = confidence(tokens, limits, is_copy=True)
    if sure is None:
        return None
    return Finding(
        id=finding_id_of(
            sink.kv_pool, sink.tenant, sink.request_id, sink.started_at_ms, source.tenant
        ),
        rule=DUPLICATED_RESPONSE,
        severity=CONTENT_SEVERITY[sure],
        confidence=sure,
        kv_pool=sink.kv_pool,
        engine=sink.engine,
        model=sink.model,
        observed_at_ms=sink.ended_at_ms,
        detected_at_ms=max(now_ms, sink.ended_at_ms),
        sink=_party(sink),
        source=_party(source),
        other_sources=tuple(map(_party, copy.sources[1:])),
        evidence=Evidence(
            runs=(),
            matched_tokens=tokens,
            unexplained_tokens=tokens,
            sink_tokens=sink.tokens,
            containment=round(copy.containment, 3),
            rarity=0.0,
            reasons={},
            thresholds=limits,
            similarity=round(copy.similarity, 3),
        ),
        explanation=_sentence(copy),
    )


def _party(sketch: ResponseSketch) -> Party:
    return Party(
        tenant=sketch.tenant,
        request_id=sketch.request_id,
        kind=Kind.RESPONSE.value,
        started_at_ms=sketch.started_at_ms,
        ended_at_ms=sketch.ended_at_ms,
        prompt_tokens=sketch.prompt_tokens,
    )


def _sentence(copy: Copy) -> str:
    sink, source = copy.sink, copy.sources[0]
    seconds = (sink.started_at_ms - source.started_at_ms) / 1000
    spread = 2 * (copy.similarity * (1 - copy.similarity) / BIGRAMS) ** 0.5
    return (
        f"Tenant {sink.tenant} received in request {sink.request_id} (on {sink.kv_pool}) the "
        f"response of tenant {source.tenant} (request {source.request_id}, started {seconds:.0f} s "
        f"earlier on {source.kv_pool}): sketches put the share of equal bigrams at "
        f"{copy.similarity:.0%}, give or take {spread:.0%}, and nothing explains them."
    )
