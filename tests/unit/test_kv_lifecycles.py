"""Thousands of random lives of KV leases: nothing is left behind, every violation is found."""

import os

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from detector.ledger.violation import Breach
from tests.unit.lifecycles import Lifecycles

LIFECYCLES = int(os.environ.get("BLEEDWATCH_TEST_LIFECYCLES", "600"))
"""Leases to begin at least; `make ledger-long` asks for 20,000."""

PER_RUN = 5
"""Leases that a run of the machine begins at least, on average."""


def test_random_lifecycles_leave_nothing_behind_and_hide_nothing() -> None:
    Lifecycles.seen.clear()
    run_state_machine_as_test(
        Lifecycles,
        settings=settings(
            max_examples=LIFECYCLES // PER_RUN,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(", ".join(f"{count:,} {what}" for what, count in Lifecycles.seen.most_common()))
    assert Lifecycles.seen["leases"] >= LIFECYCLES
    assert {one.value for one in Breach} <= Lifecycles.seen.keys()
    assert {"reuses", "refused", "admitted", "crashes"} <= Lifecycles.seen.keys()
