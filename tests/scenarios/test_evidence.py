"""Runtime evidence raises a content finding by one step, makes none, and its absence hides none."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from detector.finding import Finding, Severity
from detector.rules.joined import step_up
from ingest.schema_records import EngineEvent, EventKind, RuntimeSample
from tests.fakes.cluster.bugs import Bug
from tests.fakes.cluster.simulation import KV_POOL
from tests.scenarios.catalog import SCENARIOS
from tests.scenarios.chain import Seen
from tests.scenarios.expectations import CONTENT
from tests.scenarios.inputs import Timed
from tests.scenarios.run import SHORT, recorded, see_in, traffic

EVERY_MS = 20_000
EVIDENCE = (
    EventKind.CLEAR_FAILED,
    EventKind.METADATA_MISMATCH,
    EventKind.CHECKSUM_MISMATCH,
    EventKind.TRANSFER_FAILED,
    EventKind.LEAK_DETECTED,
    EventKind.DOUBLE_FREE,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evidence")


@pytest.fixture(scope="module")
def faulty(folder: Path) -> list[Timed]:
    """Return what is recorded of a bug that no engine notices."""
    return recorded(SCENARIOS[Bug.FREED_WHILE_DECODING], folder, traffic(SHORT))


@pytest.fixture(scope="module")
def without(folder: Path, faulty: list[Timed]) -> dict[str, Severity]:
    """Return the content findings where no engine tells anything."""
    quiet = [one for one in faulty if not isinstance(one.record, RuntimeSample | EngineEvent)]
    return severities(see_in(folder, quiet, traffic(SHORT)))


def severities(seen: Seen) -> dict[str, Severity]:
    return {one.id: one.severity for one in content(seen)}


def content(seen: Seen) -> Iterator[Finding]:
    return (one for one in seen.findings if one.rule in CONTENT)


def with_evidence(records: list[Timed]) -> list[Timed]:
    """Add evidence of every kind, all the time."""
    first, last = records[0].at_ms, records[-1].at_ms
    events = [
        Timed(
            at_ms,
            EngineEvent(
                kind=EVIDENCE[number % len(EVIDENCE)], engine="decode", kv_pool=KV_POOL, at_ms=at_ms
            ),
        )
        for number, at_ms in enumerate(range(first, last, EVERY_MS))
    ]
    return sorted([*records, *events], key=lambda one: one.at_ms)


def test_evidence_raises_severity_by_exactly_one_step(
    folder: Path, faulty: list[Timed], without: dict[str, Severity]
) -> None:
    seen = see_in(folder, with_evidence(faulty), traffic(SHORT))
    assert Severity.HIGH in without.values()
    assert severities(seen) == {name: step_up(severity) for name, severity in without.items()}


def test_clean_metrics_hide_no_content_finding(
    folder: Path, faulty: list[Timed], without: dict[str, Severity]
) -> None:
    assert any(isinstance(one.record, RuntimeSample) for one in faulty)
    assert severities(see_in(folder, faulty, traffic(SHORT))) == without


def test_evidence_alone_makes_no_content_finding(tmp_path: Path) -> None:
    clean = recorded(SCENARIOS["clean-vllm"], tmp_path, traffic(SHORT))
    plain = see_in(tmp_path, clean, traffic(SHORT))
    seen = see_in(tmp_path, with_evidence(clean), traffic(SHORT))
    assert {one.id for one in content(seen)} == {one.id for one in content(plain)}
    assert {"BW202", "BW203"} <= {one.rule for one in seen.findings}
