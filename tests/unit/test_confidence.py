"""Confidence: fixed thresholds, the density rule, and the cap while learning."""

import math

import pytest

from detector.finding import Confidence, Severity
from detector.match.confidence import CONTENT_SEVERITY, confidence, thresholds
from detector.settings import FilterSettings

FILTER = FilterSettings()
BASE = FILTER.density_base_shingles
LOW, MEDIUM, HIGH = Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH


@pytest.mark.parametrize(
    ("tokens", "wanted"),
    [
        (0, None),
        (9, None),
        (10, LOW),
        (11, LOW),
        (12, MEDIUM),
        (15, MEDIUM),
        (16, HIGH),
        (9999, HIGH),
    ],
)
def test_thresholds_of_a_quiet_pool(tokens: int, wanted: Confidence | None) -> None:
    limits = thresholds(FILTER, live_shingles=BASE, learning=False)
    assert (limits.low, limits.medium, limits.high) == (10, 12, 16)
    assert confidence(tokens, limits) == wanted


@pytest.mark.parametrize(
    ("factor", "high"), [(0, 16), (1, 16), (1.5, 18), (12, 24), (13, 25), (144, 32), (145, 33)]
)
def test_the_high_threshold_rises_by_a_step_for_every_12_fold_density(
    factor: float, high: int
) -> None:
    limits = thresholds(FILTER, live_shingles=int(factor * BASE), learning=False)
    assert limits.high == high
    assert (limits.low, limits.medium) == (10, 12)
    assert limits.density_ratio == max(factor, 1)
    assert confidence(high, limits) is HIGH
    assert confidence(high - 1, limits) is MEDIUM


def test_the_threshold_never_falls_as_the_pool_fills() -> None:
    highs = [
        thresholds(FILTER, live_shingles=round(math.exp(step / 10)), learning=False).high
        for step in range(200)
    ]
    assert highs == sorted(highs)
    assert highs[0] < highs[-1]


@pytest.mark.parametrize("tokens", [10, 12, 16, 5000])
def test_learning_caps_everything_at_low(tokens: int) -> None:
    limits = thresholds(FILTER, live_shingles=0, learning=True)
    assert limits.learning
    assert confidence(tokens, limits) is LOW
    assert confidence(9, limits) is None


def test_settings_move_every_threshold() -> None:
    own = FilterSettings(
        low_tokens=20, medium_tokens=30, high_tokens=40, density_step_tokens=3,
        density_base_shingles=10,
    )  # fmt: skip
    limits = thresholds(own, live_shingles=120, learning=False)
    assert (limits.low, limits.medium, limits.high) == (20, 30, 43)


def test_severity_follows_confidence() -> None:
    assert CONTENT_SEVERITY == {
        HIGH: Severity.HIGH, MEDIUM: Severity.MEDIUM, LOW: Severity.INFO,
    }  # fmt: skip
