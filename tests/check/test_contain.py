"""The containment example beside the fake engine: its steps, their order, and their evidence."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from detector.sample.language import Language, load_language
from tests.content.tree import ROOT
from tests.fakes.cluster.bugs import Bug
from tests.fakes.http_engine import EngineOptions, HttpEngine, http_engine

SCRIPT = ROOT / "docs" / "examples" / "contain.py"
STEPS = ["stop", "drain", "flush", "verify-flush", "restart", "verify-restart", "probe"]


@pytest.fixture(scope="module")
def language() -> Language:
    return load_language()


@pytest.fixture(params=["vllm", "sglang"])
def engine(request: pytest.FixtureRequest, language: Language) -> Iterator[HttpEngine]:
    options = EngineOptions(kind=request.param, pool_tokens=4096, context_tokens=2048)
    with http_engine(language, options) as made:
        httpx.post(
            f"{made.url}/v1/completions", json={"model": "m", "prompt": list(range(10, 400))}
        )
        yield made


def contain(
    engine: HttpEngine, folder: Path, *more: str, stop: str = "true"
) -> tuple[int, list[dict[str, Any]]]:
    """Run the example; return its exit code and the lines of its evidence."""
    evidence = folder / "contain.jsonl"
    done = subprocess.run(
        [
            sys.executable, SCRIPT, "--engine", engine.options.kind, "--url", engine.url,
            "--incident", "inc-1", "--evidence", evidence, "--patience", "0.5",
            "--stop", stop, "--restart", f"touch {folder / 'restarted'}", *more,
        ],
        check=False, capture_output=True, timeout=60,
    )  # fmt: skip
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done.returncode, [json.loads(line) for line in evidence.read_text().splitlines()]


def test_every_step_is_taken_in_order_and_leaves_evidence(
    engine: HttpEngine, tmp_path: Path
) -> None:
    code, lines = contain(engine, tmp_path, "--probe", "true")
    assert code == 0
    assert [line["step"] for line in lines] == STEPS
    assert all(line["ok"] and line["incident"] == "inc-1" for line in lines)
    assert [line["at"] for line in lines] == sorted(line["at"] for line in lines)
    assert (tmp_path / "restarted").exists()


def test_traffic_that_does_not_stop_ends_it_before_the_flush(
    engine: HttpEngine, tmp_path: Path
) -> None:
    engine.options.delay_s = 0.05
    body = {"model": "m", "prompt": [1, 2, 3], "max_tokens": 200, "stream": True}
    body["ignore_eos"] = True
    with httpx.stream("POST", f"{engine.url}/v1/completions", json=body, timeout=30):
        code, lines = contain(engine, tmp_path)
    assert code == 1
    assert [(line["step"], line["ok"]) for line in lines] == [("stop", True), ("drain", False)]
    assert not (tmp_path / "restarted").exists()


def test_a_command_that_fails_ends_it(engine: HttpEngine, tmp_path: Path) -> None:
    code, lines = contain(engine, tmp_path, stop="false")
    assert (code, len(lines)) == (1, 1)


def test_a_failed_probe_ends_it(engine: HttpEngine, tmp_path: Path) -> None:
    code, lines = contain(engine, tmp_path, "--probe", "false")
    assert (code, lines[-1]["step"], lines[-1]["ok"]) == (1, "probe", False)


def test_memory_that_is_not_free_after_the_restart_ends_it(
    language: Language, tmp_path: Path
) -> None:
    """A restart that did not happen: the leak is still there."""
    options = EngineOptions(kind="vllm", pool_tokens=4096, context_tokens=2048, delay_s=0.02)
    options.bugs.add(Bug.UNRELEASED_AFTER_ABORT)
    with http_engine(language, options) as engine:
        body = {"model": "m", "prompt": list(range(10, 400)), "max_tokens": 60, "stream": True}
        with httpx.stream("POST", f"{engine.url}/v1/completions", json=body, timeout=30) as answer:
            next(answer.iter_lines())
        code, lines = contain(engine, tmp_path)
    said = {line["step"]: line["ok"] for line in lines}
    assert code == 1
    assert not said["verify-flush"]
    assert said["restart"]
    assert not said["verify-restart"]
