"""`bleedwatch demo`: exits 0, finds every planted bleed, quickly, and leaves no files behind."""

import json
import re
import resource
from typing import Any

import pytest

from detector.sample.scenario import Scenario, demo_scenario
from tests.e2e.program import run

SECOND_RUN_S = 15.0
LONG_TOKENS = 16


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return demo_scenario(7, tmp_path_factory.mktemp("scenario"))


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("demo")
    (folder / "tmp").mkdir()
    done = run("demo", "--save", "findings.jsonl", cwd=folder, TMPDIR=str(folder / "tmp"))
    assert done.returncode == 0
    assert re.search(rb"\d+ findings \(9 high, .*\) in 600 requests", done.stderr)
    assert b"learning" not in done.stderr
    assert done.stdout.startswith(b"SEVERITY")
    assert not list((folder / "tmp").iterdir())
    lines = (folder / "findings.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_every_planted_bleed_is_found_for_sure(
    scenario: Scenario, findings: list[dict[str, Any]]
) -> None:
    planted = {
        (row.victim_request_id, row.source_request_id)
        for row in scenario.truth
        if row.run_tokens >= LONG_TOKENS
    }
    assert len(planted) == len(scenario.truth) == 9
    sure = [one for one in findings if one["confidence"] == "high"]
    told = {
        (one["sink"]["request_id"], source["request_id"])
        for one in sure
        for source in (one["source"], *one["other_sources"])
    }
    assert planted <= told
    assert len(sure) == len(planted)


def what(finding: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return what of a finding does not depend on the secret of the run."""
    return finding["sink"]["request_id"], finding["evidence"]


def test_the_same_seed_gives_the_same_findings_in_time(findings: list[dict[str, Any]]) -> None:
    """What a user sees the second time, when kernels are compiled and files are cached.

    CPU time: other tests run beside it. It keeps one core busy, and hardly waits for anything.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = run("demo", "-o", "jsonl")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SECOND_RUN_S
    assert done.returncode == 0
    again = [json.loads(line) for line in done.stdout.splitlines()]
    assert [what(one) for one in again] == [what(one) for one in findings]


def test_another_seed_makes_other_traffic(findings: list[dict[str, Any]]) -> None:
    done = run("demo", "--seed", "11", "-o", "json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["requests"] == 600
    known = {one["sink"]["request_id"] for one in findings}
    assert not known & {one["sink"]["request_id"] for one in document["findings"]}
    assert sum(one["confidence"] == "high" for one in document["findings"]) >= 9
