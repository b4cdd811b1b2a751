"""`bleedwatch replay` on genuine engine logs: nothing where nothing was planted, all that was."""

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from detector.config.root import Settings
from detector.finding import Confidence, Finding
from detector.service import ReplayReport, replay
from ingest.coverage import Coverage
from ingest.sources.base import RawRequest
from ingest.sources.sglang import SglangLog
from ingest.sources.vllm import VllmLog
from ingest.tenancy import Tenancy
from tests.engine_logs.planting import Planter, Seeded

RULES = [
    {"kind": "header", "name": "x-tenant-id"},
    {"kind": "request_id", "pattern": r"(?:chatcmpl-|cmpl-|)(?P<tenant>[a-z]+)-r\d\d-"},
    {"kind": "field", "name": "user", "pattern": "tenant:(?P<tenant>[a-z]+)"},
]

SETTINGS = Settings.model_validate({"tenancy": {"rules": RULES}})

SURE = Settings.model_validate(
    {"tenancy": {"rules": RULES}, "detection": {"commonness": {"learning_ms": 0}}}
)
"""As if a day had been seen: confidence is not capped."""

SEEDS = (1, 2)

SEEDED = 50
"""Bleeds per engine, over all of its logs and seeds."""

SURE_TOKENS = 23
"""These logs are of busy engines: at up to 5 times the usual density, 22 tokens make sure."""


class Log(NamedTuple):
    """One genuine log: what the reader finds in it, and how many bleeds each copy gets."""

    name: str
    engine: str
    requests: int
    unmapped: int
    answers: int
    seeded: int = 0


LOGS = [
    Log("vllm/a-debug-text/server.log.zst", "vllm", 188, 5, 76, seeded=20),
    Log("vllm/c-json-dictconfig/runC_requests_json.log.zst", "vllm", 55, 0, 18, seeded=5),
    Log("vllm/e-fault-leak/runE_leak_server.log.zst", "vllm", 92, 19, 0),
    Log("sglang/a-level3-json/server.log.zst", "sglang", 202, 2, 155, seeded=20),
    Log("sglang/a-level3-json/reqlog/vm_0.log.zst", "sglang", 202, 2, 155),
    Log("sglang/c-fault-leak/server.log.zst", "sglang", 60, 12, 36, seeded=5),
]
"""`unmapped`: probes, and requests of which no tenant is known. `answers`: mapped, with ids."""


@pytest.fixture(scope="module")
def logs(recorded_traffic: Path) -> Path:
    return recorded_traffic / "engine-logs"


def content(path: Path) -> bytes:
    return subprocess.run(["zstd", "-dcf", str(path)], capture_output=True, check=True).stdout


def requests_of(log: bytes, engine: str) -> list[RawRequest]:
    lines = enumerate(log.split(b"\n"), start=1)
    if engine == "sglang":
        return list(SglangLog(lines, engine="e", coverage=Coverage()))
    return list(VllmLog(lines, engine="e", coverage=Coverage(), year=2026))


def tenants_of(requests: list[RawRequest]) -> dict[str, str]:
    tenancy = Tenancy(SETTINGS.tenancy)
    found = {one.request_id: tenancy.tenant(one) for one in requests}
    return {name: tenant for name, tenant in found.items() if tenant is not None}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name.split("/")[1])
def test_every_request_is_read_and_nothing_is_found(logs: Path, log: Log) -> None:
    report = replay([str(logs / log.name)], SURE)
    assert report.requests == report.coverage.requests == log.requests
    assert report.coverage.unmapped_tenants == log.unmapped
    assert report.responses == log.answers
    assert not report.coverage.broken_by_reason
    assert (report.findings, report.clock_jumps, report.evicted_sequences) == ([], 0, 0)


def test_gibberish_repeats_within_tenants_only(logs: Path) -> None:
    """Nothing is found because nothing overlaps, not because a rule explains it away."""
    for log in LOGS:
        assert not replay([str(logs / log.name)], SURE).explained


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_seeded_bleeds_are_found(logs: Path, tmp_path: Path, engine: str) -> None:
    told: list[tuple[Seeded, Finding | None]] = []
    for log in (one for one in LOGS if one.engine == engine and one.seeded):
        for seed in SEEDS:
            path, bleeds = seeded_copy(logs / log.name, tmp_path, log, seed)
            report = replay([str(path)], SURE)
            assert report.requests == log.requests
            assert not accused_wrongly(bleeds, report)
            told += [(bleed, about(bleed, report.findings)) for bleed in bleeds]
            path.unlink()
    assert len(told) == SEEDED
    found = [(bleed, finding) for bleed, finding in told if finding is not None]
    assert len(found) >= 0.95 * SEEDED
    long = [finding for bleed, finding in found if bleed.tokens >= SURE_TOKENS]
    assert len(long) >= SEEDED // 3
    assert all(finding.confidence is Confidence.HIGH for finding in long)
    whole = [bleed for bleed, finding in found if finding.evidence.matched_tokens >= bleed.tokens]
    assert len(whole) >= 0.95 * SEEDED


def test_the_command_finds_them_too_and_says_that_it_is_learning(
    logs: Path, tmp_path: Path
) -> None:
    log = LOGS[0]
    path, bleeds = seeded_copy(logs / log.name, tmp_path, log, SEEDS[0])
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps({"tenancy": {"rules": RULES}}), encoding="utf-8")
    program = [sys.executable, "-c", "from detector.cli.app import main; main()"]
    command = [*program, "replay", str(path), "--config", str(config), "--fail-on", "info"]
    done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    told = {(one["sink"]["request_id"], one["source"]["tenant"]) for one in document["findings"]}
    missed = [bleed for bleed in bleeds if (bleed.victim, bleed.source_tenant) not in told]
    assert len(missed) <= len(bleeds) // 20
    assert document["requests"] == log.requests
    assert document["learning"]
    assert {one["confidence"] for one in document["findings"]} == {"low"}
    assert "not judged: 92 responses (not logged)" in done.stderr
    assert "not judged: 5 requests (without a tenant)" in done.stderr


def seeded_copy(original: Path, folder: Path, log: Log, seed: int) -> tuple[Path, list[Seeded]]:
    """Write a copy of a log with bleeds in it."""
    text = content(original)
    requests = requests_of(text, log.engine)
    planter = Planter(Random(seed), requests, tenants_of(requests))
    text, bleeds = planter.seed(text, count=log.seeded, engine=log.engine)
    path = folder / original.name.removesuffix(".zst")
    path.write_bytes(text)
    return path, bleeds


def about(bleed: Seeded, findings: list[Finding]) -> Finding | None:
    """Return the finding that names the victim and the very source of a bleed."""
    for finding in findings:
        sources = {source.request_id for source in (finding.source, *finding.other_sources)}
        if finding.sink.request_id == bleed.victim and bleed.source in sources:
            return finding
    return None


def accused_wrongly(bleeds: list[Seeded], report: ReplayReport) -> list[Finding]:
    """Return the findings that are about no seeded bleed."""
    pairs = {(bleed.victim, bleed.source_tenant) for bleed in bleeds}
    return [
        finding
        for finding in report.findings
        if (finding.sink.request_id, finding.source.tenant) not in pairs
    ]
