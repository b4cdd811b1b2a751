"""A short part of the matrix: what must fire fires, nothing else does, and every row is sound."""

import pytest

from detector.rules.catalog import RULES
from exporters.incidents.model import counts_alone
from tests.fakes.cluster.bugs import Bug
from tests.scenarios.catalog import SCENARIOS
from tests.scenarios.expectations import ABOUT_THE_MONITOR, fired, rows
from tests.scenarios.run import SHORT, run, traffic

REPRESENTATIVE = (
    Bug.STALE_AFTER_REJECT,
    Bug.FREED_WHILE_DECODING,
    Bug.LEASE_EXPIRED,
    Bug.CACHE_KEY_WITHOUT_TENANT,
)


@pytest.mark.parametrize("name", REPRESENTATIVE)
def test_what_must_fire_fires_and_nothing_else(name: Bug) -> None:
    seen = fired(run(SCENARIOS[name], traffic(SHORT)).findings)
    same_class = [row for row in rows() if row.scenario == name]
    assert same_class
    assert {row.bug: row.differences(seen) for row in same_class} == {
        row.bug: [] for row in same_class
    }


@pytest.mark.parametrize("name", ["clean-vllm", "clean-sglang"])
def test_traffic_without_faults_is_clean_though_it_overlaps(name: str) -> None:
    seen = run(SCENARIOS[name], traffic(SHORT))
    assert fired(seen.findings) <= {"BW402"}
    assert not seen.rules.keys() & ABOUT_THE_MONITOR
    assert not [one for one in seen.findings if counts_alone(one.severity, one.confidence)]
    assert seen.overlapping > 100


def test_every_row_names_a_scenario_and_rules_that_exist() -> None:
    known = rows()
    assert {row.scenario for row in known} <= SCENARIOS.keys()
    assert {rule for row in known for rule in (*row.fires, *row.may)} <= RULES.keys()
    assert len({row.bug for row in known}) == len(known)


def test_every_bug_has_a_scenario() -> None:
    simulated = {bug for scenario in SCENARIOS.values() for bug in scenario.topology.bugs}
    assert simulated == set(Bug)


def test_a_difference_is_told() -> None:
    row = next(row for row in rows() if "BW101" in row.fires)
    right = set(row.fires)
    assert row.differences(right) == []
    assert row.differences(right - {"BW101"} | {"BW204"}) == [
        "BW101 did not fire",
        "BW204 fired",
    ]
