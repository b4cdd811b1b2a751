"""A sender that is killed while it delivers loses nothing, and repeats only what it must."""

from pathlib import Path

from tests.alerts.kills import run


def test_kill_9_in_the_middle_of_deliveries(tmp_path: Path) -> None:
    verdict = run(tmp_path, rounds=2, seed=7)
    assert verdict.kills == 2
    assert verdict.put >= 2 * 12 * 3
    assert verdict.is_good, verdict
