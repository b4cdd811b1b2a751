"""The bench of the look-back runs, finds the planted source, and holds its floor on any machine."""

import pytest

from detector.benchmarks import trace as bench

FLOOR = 5.0
"""Million retained tokens a second on one core that a look-back must reach."""


def test_the_floor_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "RETAINED_TOKENS", 1_000_000)
    monkeypatch.setattr(bench, "SECONDS", 0.0)
    monkeypatch.setattr(bench, "PEER_SEQUENCES", 50)
    report = bench.run_trace(on_progress=lambda _: None)
    assert report.ratios["million tokens a second on one core"] >= FLOOR
    assert {row["contestant"] for row in report.rows} == {
        "look-back (numba)", "Python set of 10-grams",
    }  # fmt: skip
