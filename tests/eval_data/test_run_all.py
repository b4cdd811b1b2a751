"""The recorded hour with planted bleeds gives through the stream what it gives in a replay."""

from pathlib import Path

import pytest

from detector.config.load import load_settings
from detector.config.root import Settings
from detector.finding import Confidence, Finding
from detector.service import replay
from detector.streaming.run_all import Input, run

FOUND = 300
"""Measured: 315 findings, 232 of them high."""


def settings(partitions: int) -> Settings:
    chosen = [f"kafka.partitions={partitions}"]
    return load_settings(assignments=chosen, environment={}).settings


@pytest.fixture(scope="module")
def source(recorded_traffic: Path) -> Input:
    dev = recorded_traffic / "dev"
    return Input(paths=[str(dev / "planted.jsonl.zst")], history=[str(dev / "history.jsonl.zst")])


@pytest.fixture(scope="module")
def wanted(source: Input) -> list[Finding]:
    found = replay(source.paths, settings(1), history=source.history).findings
    assert len(found) > FOUND
    return found


def high(findings: list[Finding]) -> set[str]:
    return {one.id for one in findings if one.confidence is Confidence.HIGH}


def test_one_partition_finds_exactly_the_same(source: Input, wanted: list[Finding]) -> None:
    got = run(source, settings(1)).findings
    assert {one.id: one.evidence for one in got} == {one.id: one.evidence for one in wanted}


def test_eight_partitions_find_the_same_sure_bleeds(source: Input, wanted: list[Finding]) -> None:
    got = run(source, settings(8)).findings
    assert high(got) == high(wanted)
    others = {one.id for one in got} ^ {one.id for one in wanted}
    assert len(others) <= len(wanted) * 0.05
