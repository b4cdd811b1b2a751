"""The whole cluster, as `make cluster-demo` runs it: both faults are seen everywhere in time."""

import resource
from pathlib import Path

import pytest

from tests.cluster import demo, seen
from tests.cluster.__main__ import PICTURES
from tests.cluster.seen import MissingError
from tests.cluster.steps import Steps

PNG = b"\x89PNG"

SEEN_WITHIN_S = 60.0
ALL_WITHIN_S = 280.0
"""Other tests run beside this one, and none may take 300 s. `make cluster-demo` holds it against
ten seconds and three minutes."""

CPU_S = demo.ALL_WITHIN_S
"""Whatever runs beside it: half of what two cores have in the three minutes."""


def test_both_faults_are_seen_everywhere_and_resolved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seen, "SEEN_WITHIN_S", SEEN_WITHIN_S)
    monkeypatch.setattr(demo, "ALL_WITHIN_S", ALL_WITHIN_S)
    steps, before_s = Steps(), cpu_seconds()
    demo.run(tmp_path, steps, pictures=PICTURES)
    assert not [step for step in steps.done if step.failure]
    assert cpu_seconds() - before_s < CPU_S
    assert (PICTURES / "triage.png").read_bytes().startswith(PNG)
    said = "".join(log.read_text(errors="replace") for log in tmp_path.glob("*.log"))
    assert "Traceback" not in said


def test_a_run_that_takes_longer_than_three_minutes_fails() -> None:
    demo.hold(179.0)
    with pytest.raises(MissingError, match="took 181 s instead of 180"):
        demo.hold(181.0)


def cpu_seconds() -> float:
    """Return the CPU time of all processes that we started and that have ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
