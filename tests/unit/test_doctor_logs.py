"""What the end of a log shows the doctor, and what it says to each fault."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from detector.config.load import load_settings
from detector.doctor import log_evidence, logs
from detector.doctor.facts import Facts
from detector.doctor.log_evidence import logs_of
from detector.doctor.plan import Probe
from detector.doctor.verdicts import Level, Verdict
from tests.e2e.traffic import EPOCH_S, TENANT_RULES, WRITERS, pairs, write_sglang, write_vllm

COUNT = 6
LAST_S = EPOCH_S + 600
"""After all requests of the traffic."""


def facts(tmp_path: Path, *files: object, **more: Any) -> Facts:
    given = {
        "sidecar": {"files": [str(file) for file in files], **more.pop("sidecar", {})},
        "tenancy": {"rules": TENANT_RULES},
        **more,
    }
    config = tmp_path / "config.json"
    config.write_text(json.dumps(given))
    return Facts(load_settings(str(config), environment={}).settings)


def only(probe: Probe, given: Facts) -> Verdict:
    (verdict,) = probe(given)
    return verdict


def write(tmp_path: Path, form: str, written_s: float = LAST_S) -> Path:
    path = WRITERS[form](tmp_path / "server.log", pairs(COUNT))
    os.utime(path, (written_s, written_s))
    return path


@pytest.mark.parametrize("form", WRITERS)
def test_a_good_log_passes_every_check(tmp_path: Path, form: str) -> None:
    given = facts(tmp_path, write(tmp_path, form))
    for probe in (logs.requests, logs.token_ids, logs.tenants, logs.clock):
        assert only(probe, given).level is Level.OK, probe
    assert only(logs.requests, given).found.startswith(f"{2 * COUNT} requests")


def test_request_logging_that_is_off(tmp_path: Path) -> None:
    path = write(tmp_path, "vllm")
    kept = [line for line in path.read_text().splitlines() if "request_logger" not in line]
    path.write_text("\n".join(kept) + "\n")
    verdict = only(logs.requests, facts(tmp_path, path, sidecar={"format": "vllm"}))
    assert verdict.level is Level.ERROR
    assert "--enable-log-requests" in verdict.next_step
    assert list(logs.token_ids(facts(tmp_path, path))) == []


def test_prompts_without_ids(tmp_path: Path) -> None:
    path = write(tmp_path, "vllm")
    kept = [line for line in path.read_text().splitlines() if "prompt_token_ids" not in line]
    path.write_text("\n".join(kept) + "\n")
    verdict = only(logs.token_ids, facts(tmp_path, path))
    assert verdict.level is Level.ERROR
    assert verdict.found == f"prompts not logged: {2 * COUNT} of {2 * COUNT} requests"
    assert "DEBUG" in verdict.next_step


def test_ids_that_are_cut(tmp_path: Path) -> None:
    path = write(tmp_path, "sglang")
    first, *rest = path.read_text().splitlines()
    cut = [re.sub(r'("output_ids": \[\d+, )', r'\1"...", ', line, count=1) for line in rest[:20]]
    path.write_text("\n".join([first, *cut, *rest[20:]]) + "\n")
    verdict = only(logs.token_ids, facts(tmp_path, path))
    assert verdict.level is Level.WARNING
    assert verdict.found.startswith("responses truncated")
    assert "--log-requests-level to 3" in verdict.next_step


def test_tenants_that_no_rule_finds(tmp_path: Path) -> None:
    path = write(tmp_path, "sglang")
    assert only(logs.tenants, facts(tmp_path, path)).level is Level.OK
    rules = {"tenancy": {"rules": [{"kind": "field", "name": "cache_salt"}]}}
    verdict = only(logs.tenants, facts(tmp_path, path, **rules))
    assert (verdict.level, verdict.found) == (
        Level.ERROR,
        f"0 of {2 * COUNT} requests have a tenant",
    )
    half = {"kind": "header", "name": "x-tenant-id", "tenants": {"acme": "acme"}}
    verdict = only(logs.tenants, facts(tmp_path, path, tenancy={"rules": [half]}))
    assert (verdict.level, verdict.found[:3]) == (Level.WARNING, f"{COUNT} o")


@pytest.mark.parametrize(("ahead_s", "level"), [(30, Level.WARNING), (3_600, Level.ERROR)])
def test_requests_dated_ahead_of_the_log(tmp_path: Path, ahead_s: int, level: Level) -> None:
    newest_s = max(one.ts_end for one in pairs(COUNT)) + EPOCH_S
    path = write(tmp_path, "sglang", newest_s - ahead_s)
    verdict = only(logs.clock, facts(tmp_path, path))
    assert verdict.level is level
    assert "ahead" in verdict.found


def test_only_the_end_of_a_long_log_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, "jsonl")
    monkeypatch.setattr(log_evidence, "TAIL_BYTES", path.stat().st_size // 2)
    (log,) = facts(tmp_path, path).logs
    assert not log.is_whole
    assert 0 < log.requests < 2 * COUNT
    assert log.coverage.broken_by_reason == {}


def test_lines_of_a_container_runtime_are_read(tmp_path: Path) -> None:
    path = write_sglang(tmp_path / "0.log", pairs(COUNT))
    prefixed = (f"2026-11-29T18:00:00.1Z stdout F {line}" for line in path.read_text().splitlines())
    path.write_text("\n".join(prefixed) + "\n")
    assert only(logs.requests, facts(tmp_path, path)).level is Level.OK


@pytest.mark.parametrize(
    ("content", "level"), [("", Level.UNKNOWN), ("nothing known\n" * 9, Level.ERROR)]
)
def test_logs_that_show_nothing(tmp_path: Path, content: str, level: Level) -> None:
    path = tmp_path / "server.log"
    path.write_text(content)
    assert only(logs.requests, facts(tmp_path, path)).level is level


def test_broken_entries_are_counted_without_their_content(tmp_path: Path) -> None:
    path = write(tmp_path, "jsonl")
    path.write_text(path.read_text() + '{"request_id": "s3cret\n')
    verdict = only(logs.requests, facts(tmp_path, path))
    assert verdict.level is Level.WARNING
    assert verdict.found.startswith("1 broken entries")
    assert "s3cret" not in str(verdict)


def test_a_log_that_is_not_there_or_not_named(tmp_path: Path) -> None:
    assert only(logs.requests, facts(tmp_path, tmp_path / "none.log")).level is Level.ERROR
    assert only(logs.requests, facts(tmp_path, tmp_path / "*.log")).found == "no file matches"
    assert only(logs.requests, facts(tmp_path)).subject == "sidecar.files"


def test_a_pipe_is_left_to_the_sidecar(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    given = facts(tmp_path, path, "-")
    assert [verdict.level for verdict in logs.requests(given)] == [Level.UNKNOWN] * 2
    assert [verdict.level for verdict in logs.volume(given)] == [Level.OK] * 2


def test_rotated_files_are_no_logs_of_their_own(tmp_path: Path) -> None:
    for name in ("server.log", "server.log.1", "server.log.2.gz", "other.log"):
        (tmp_path / name).touch()
    given = facts(tmp_path, tmp_path / "*.log*")
    assert [Path(name).name for name in logs_of(given.settings)] == ["other.log", "server.log"]


def test_no_verdict_repeats_a_log(tmp_path: Path) -> None:
    path = write_vllm(tmp_path / "server.log", pairs(COUNT), text="s3cret words of a tenant")
    given = facts(tmp_path, path)
    probes = (logs.requests, logs.token_ids, logs.tenants, logs.clock, logs.volume)
    said = str([list(probe(given)) for probe in probes])
    assert "s3cret" not in said
    assert not [one for one in pairs(COUNT) if str(one.response_ids[3]) in said]
