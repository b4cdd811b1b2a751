"""Resets, gaps, skew, repeats and delays of what is reported change no finding."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from detector.finding import Finding
from ingest.schema_records import EngineEvent, RuntimeSample
from tests.fakes.cluster.bugs import Bug
from tests.scenarios.catalog import SCENARIOS
from tests.scenarios.expectations import fired
from tests.scenarios.inputs import Timed
from tests.scenarios.run import SHORT, recorded, see_in, traffic

LATE_MS = 20_000
"""How long some reports are on their way: less than the grace of a minute."""

SKEW_S = 30.0

Key = tuple[str, str, str, str, str]
Reports = RuntimeSample | EngineEvent
Disorder = Callable[[list[Timed]], list[Timed]]


def with_reset(records: list[Timed]) -> list[Timed]:
    """Let all counters begin anew in the middle, as if the engine had been started again."""
    half_ms = (records[0].at_ms + records[-1].at_ms) // 2
    before: dict[str, RuntimeSample] = {}
    changed = []
    for at_ms, record in records:
        if isinstance(record, RuntimeSample):
            if at_ms < half_ms:
                before[record.engine] = record
            elif (old := before.get(record.engine)) is not None:
                record = _since(record, old)  # noqa: PLW2901 - the same sample of the new process
        changed.append(Timed(at_ms, record))
    return changed


def _since(sample: RuntimeSample, old: RuntimeSample) -> RuntimeSample:
    totals = ("clear_failures_total", "metadata_mismatches_total", "transfer_failures_total")
    return msgspec.structs.replace(
        sample,
        **{
            name: None if now is None else now - (getattr(old, name) or 0)
            for name in totals
            for now in [getattr(sample, name)]
        },
    )


def with_gaps(records: list[Timed]) -> list[Timed]:
    """Leave out every third sample."""
    samples = [one for one in records if isinstance(one.record, RuntimeSample)]
    missing = {id(one) for one in samples[1::3]}
    return [one for one in records if id(one) not in missing]


def with_repeats(records: list[Timed]) -> list[Timed]:
    """Hand every sample and every event over twice."""
    return [one for one in records for _ in range(1 + isinstance(one.record, Reports))]


def with_delays(records: list[Timed]) -> list[Timed]:
    """Hand every other event over late, behind what happened meanwhile."""
    events = [one for one in records if isinstance(one.record, EngineEvent)]
    slow = {id(one) for one in events[::2]}
    delayed = [
        Timed(one.at_ms + LATE_MS, one.record) if id(one) in slow else one for one in records
    ]
    return sorted(delayed, key=lambda one: one.at_ms)


@pytest.fixture(scope="module", params=[Bug.LEASE_EXPIRED, Bug.STALE_AFTER_REJECT])
def run(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[Timed], list[Key]]:
    """Return a recorded scenario and what is found in it as it is."""
    folder = tmp_path_factory.mktemp("disorder")
    records = recorded(SCENARIOS[request.param], folder, traffic(SHORT))
    found = about(see_in(folder, records, traffic(SHORT)).findings)
    assert found
    return folder, records, found


def about(findings: tuple[Finding, ...]) -> list[Key]:
    """Return what the findings that count are about.

    Ids are left out: a row of failures begins with the first that is known when it is told.
    """
    counted = fired(findings)
    return sorted(
        (one.rule, one.engine, one.severity, one.sink.request_id, one.source.request_id)
        for one in findings
        if one.rule in counted
    )


@pytest.mark.parametrize("disorder", [with_reset, with_gaps, with_repeats, with_delays])
def test_disorder_changes_no_finding(
    run: tuple[Path, list[Timed], list[Key]], disorder: Disorder
) -> None:
    folder, records, found = run
    assert about(see_in(folder, disorder(records), traffic(SHORT)).findings) == found


def test_a_skew_between_gateway_and_engine_changes_no_finding(tmp_path: Path) -> None:
    told = []
    scenario = replace(SCENARIOS[Bug.STALE_AFTER_REJECT], from_gateway=True)
    for skew_s in (0.0, SKEW_S):
        folder = tmp_path / f"{skew_s}"
        folder.mkdir()
        skewed = replace(scenario, topology=replace(scenario.topology, gateway_skew_s=skew_s))
        found = see_in(folder, recorded(skewed, folder, traffic(SHORT)), traffic(SHORT)).findings
        told.append(about(found))
    assert told[0] == told[1]
    assert {"BW101", "BW102", "BW206"} <= {rule for rule, *_ in told[0]}
