"""Versions of one finding: which is the surest, whatever order they come in."""

import msgspec

from detector.finding import Finding
from exporters.incidents.model import Observed, confidence_rank

_Order = tuple[int, int, int, int, int, bytes]


def put_together(known: Observed, told: Finding) -> Observed:
    """Return what is known of a finding after it was told again; the same object if nothing is new.

    The graver version stays, of equal ones the surer, that with more tokens, then the one told
    first. The span covers all of them.
    """
    if told == known.finding:
        return known
    surest = max(known.finding, told, key=_order)
    from_ms = min(known.from_ms, told.observed_at_ms)
    until_ms = max(known.until_ms, told.observed_at_ms)
    if surest is known.finding and (from_ms, until_ms) == (known.from_ms, known.until_ms):
        return known
    return Observed(finding=surest, from_ms=from_ms, until_ms=until_ms)


def is_news(before: Observed, after: Observed) -> bool:
    """True if a version says more than another time of detection."""
    same_span = (before.from_ms, before.until_ms) == (after.from_ms, after.until_ms)
    return not same_span or _order(before.finding)[:4] != _order(after.finding)[:4]


def _order(finding: Finding) -> _Order:
    return (
        finding.severity.rank,
        confidence_rank(finding.confidence),
        finding.evidence.unexplained_tokens,
        finding.evidence.matched_tokens,
        -finding.detected_at_ms,
        msgspec.json.encode(finding),
    )
