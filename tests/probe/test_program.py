"""`bleedwatch probe` as a program: what it writes, how it ends, whom it refuses, what it hides."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner, Result

from detector.cli.app import app
from detector.probe.canaries import CANARY_TOKENS
from detector.probe.plan import CHECKS, NAMES
from detector.sample.language import Language, load_language
from tests.content.tree import ROOT
from tests.fakes.cluster.bugs import Bug
from tests.fakes.http_engine import EngineOptions, HttpEngine, http_engine

POOL: Final = 2_048
ONLY: Final = ("usage", "salts", "boundary", "canary-over-limit")
SKIPS: Final = [f"--skip={name}" for name in NAMES if name not in ONLY]


@pytest.fixture(scope="module")
def language() -> Language:
    return load_language()


@pytest.fixture
def engine(language: Language) -> Iterator[HttpEngine]:
    given = EngineOptions(kind="sglang", pool_tokens=POOL, context_tokens=POOL)
    with http_engine(language, given) as made:
        yield made


def program(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["probe", *arguments, "--settle-seconds=1"])


def test_json_is_the_record(engine: HttpEngine, tmp_path: Path) -> None:
    path = tmp_path / "probe.json"
    done = program(engine.url, *SKIPS, "-o", "json", "--record", str(path))
    assert done.exit_code == 0
    said = json.loads(done.stdout)
    assert json.loads(path.read_text()) == said
    assert said["passed"] is True
    assert said["requests"] == engine.calls
    assert said["configurations"][0]["pool_tokens"] == POOL
    assert {row["check"] for row in said["checks"]} == set(ONLY)
    assert all("stands for" in row["why"] for row in said["checks"])


def test_junit_tells_what_failed(engine: HttpEngine, tmp_path: Path) -> None:
    engine.options.bugs.add(Bug.STALE_AFTER_REJECT)
    saved = tmp_path / "findings.jsonl"
    done = program(engine.url, *SKIPS, "-o", "junit", "--save", str(saved))
    assert done.exit_code == 1
    suite = ElementTree.fromstring(done.stdout)
    failed = {
        case.get("name") for case in suite.iter("testcase") if case.find("failure") is not None
    }
    assert failed == {"boundary", "canary-over-limit"}
    rows = [json.loads(line) for line in saved.read_text().splitlines()]
    assert {row["rule"] for row in rows} == {"BW301"}
    explained = CliRunner().invoke(app, ["explain", rows[0]["id"], "--from", str(saved)])
    assert explained.exit_code == 0
    assert "probe-a" in explained.output


def test_nothing_that_was_sent_is_written(engine: HttpEngine, tmp_path: Path) -> None:
    engine.options.bugs.add(Bug.STALE_AFTER_REJECT)
    files = [tmp_path / "probe.json", tmp_path / "findings.jsonl"]
    done = program(engine.url, *SKIPS, "-o", "json", f"--record={files[0]}", f"--save={files[1]}")
    written = done.output + "".join(one.read_text() for one in files)
    for _, _, asked in engine.received:
        assert str(asked["input_ids"][:3])[1:-1] not in written
        assert asked["extra_key"] not in written
    assert len(engine.received[0][2]["input_ids"]) < CANARY_TOKENS < POOL


def test_another_machine_needs_a_word() -> None:
    done = program("http://192.0.2.1:30000")
    assert done.exit_code == 1
    assert "--i-own-this-endpoint" in str(done.exception)


def test_an_engine_on_another_machine_needs_a_word_too(engine: HttpEngine) -> None:
    done = program(engine.url, "--engine-url=http://192.0.2.1:30000")
    assert "--i-own-this-endpoint" in str(done.exception)
    assert engine.calls == 0


def test_tenants_with_keys_of_their_own_carry_no_salt(engine: HttpEngine, tmp_path: Path) -> None:
    files = []
    for name in ("a", "b"):
        files.append(tmp_path / name)
        files[-1].write_text(f"key-of-{name}\n")
        files[-1].chmod(0o600)
    given = [f"--token-file={files[0]}", f"--other-token-file={files[1]}"]
    done = program(engine.url, *SKIPS, *given, "-o", "json")
    keys = {headers["authorization"] for _, headers, _ in engine.received}
    assert keys == {"Bearer key-of-a", "Bearer key-of-b"}
    assert all("extra_key" not in asked for _, _, asked in engine.received)
    failed = {row["check"] for row in json.loads(done.stdout)["checks"] if row["verdict"] == "fail"}
    assert failed == {"salts"}
    assert "key-of" not in done.output


def test_the_form_of_openai_finds_the_same(engine: HttpEngine) -> None:
    done = program(engine.url, *SKIPS, "--api=openai", "-o", "json")
    assert done.exit_code == 0
    assert {path for path, _, _ in engine.received} == {"/v1/completions"}
    assert {asked["model"] for _, _, asked in engine.received} == {engine.options.model}


def test_a_check_that_does_not_exist_cannot_be_left_out(engine: HttpEngine) -> None:
    done = program(engine.url, "--skip=nothing")
    assert "no check is called 'nothing'" in str(done.exception)
    assert engine.calls == 0


def test_the_page_explains_every_check() -> None:
    page = (ROOT / "docs" / "probe.md").read_text(encoding="utf-8")
    for check in CHECKS:
        assert f"| `{check.name}` | {check.about} | {check.stands_for} |" in page
