"""From containment to the review: one engine, its probe, and what the checklist makes of it."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from detector.sample.language import load_language
from tests.check.test_checklist import POOL, TESTED, answers
from tests.check.test_contain import SCRIPT
from tests.e2e.program import PROGRAM, Capture, call
from tests.fakes.cluster.bugs import Bug
from tests.fakes.http_engine import EngineOptions, http_engine

SKIPPED = ("release-after-time-out", "canary-concurrent", "canary-short", "salts")
"""Tests that need an engine which is slow, or a minute."""


@pytest.mark.parametrize(("bugs", "answer"), [(set(), "partly"), ({Bug.OVER_LIMIT_ANSWERED}, "no")])
def test_the_record_of_the_probe_ends_the_containment(
    capsys: Capture, tmp_path: Path, bugs: set[Bug], answer: str
) -> None:
    options = EngineOptions(kind="sglang", pool_tokens=2048, context_tokens=1024, bugs=bugs)
    record, evidence = tmp_path / "probe.json", tmp_path / "contain.jsonl"
    with http_engine(load_language(), options) as engine:
        skip = [word for name in SKIPPED for word in ("--skip", name)]
        probe = (*PROGRAM, "probe", engine.url, "--record", str(record), "--settle-seconds", "1")
        done = subprocess.run(
            [
                sys.executable, SCRIPT, "--engine", "sglang", "--url", engine.url,
                "--incident", "inc-1", "--evidence", evidence, "--patience", "2",
                "--stop", "true", "--restart", "true", "--probe", shlex.join([*probe, *skip]),
            ],
            check=False, capture_output=True, timeout=120,
        )  # fmt: skip
        _, page, _ = call(capsys, "checklist", "--url", engine.url, "--probe", record)
    last = json.loads(evidence.read_text().splitlines()[-1])
    assert (last["incident"], last["step"]) == ("inc-1", "probe")
    assert last["ok"] == (not bugs)
    assert done.returncode == bool(bugs)
    assert json.loads(record.read_text())["passed"] == (not bugs)
    assert (answers(page)[TESTED], answers(page)[POOL]) == (answer, "not known")
