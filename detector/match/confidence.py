"""From unexplained tokens to confidence, and from confidence to severity."""

import math

from detector.finding import Confidence, Severity, Thresholds
from detector.settings import FilterSettings

DENSITY_BASE = 12
"""The threshold rises by one step for every 12-fold density: 12 times dev traffic was measured."""

CONTENT_SEVERITY = {
    Confidence.HIGH: Severity.HIGH,
    Confidence.MEDIUM: Severity.MEDIUM,
    Confidence.LOW: Severity.INFO,
}


def thresholds(settings: FilterSettings, *, live_shingles: int, learning: bool) -> Thresholds:
    """Return the thresholds in force for a pool that holds that many shingles in its window."""
    ratio = max(1.0, live_shingles / settings.density_base_shingles)
    step = settings.density_step_tokens * math.log(ratio, DENSITY_BASE)
    return Thresholds(
        low=settings.low_tokens,
        medium=settings.medium_tokens,
        high=settings.high_tokens + math.ceil(step),
        density_ratio=round(ratio, 3),
        learning=learning,
    )


def confidence(
    unexplained_tokens: int, limits: Thresholds, *, is_copy: bool = False
) -> Confidence | None:
    """Return the confidence, None below the lowest threshold; learning caps it at low.

    An edited copy, which no run of tokens proves, is medium at most.
    """
    if unexplained_tokens < limits.low:
        return None
    if limits.learning or unexplained_tokens < limits.medium:
        return Confidence.LOW
    if is_copy or unexplained_tokens < limits.high:
        return Confidence.MEDIUM
    return Confidence.HIGH
