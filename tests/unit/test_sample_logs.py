"""The demo's engine logs: our readers get back every request, id for id, and every tenant."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from detector.model import EngineId
from detector.sample.language import Language, load_language
from detector.sample.scenario import (
    DEMO_BLEEDS,
    REPEAT_VICTIMS,
    EngineLog,
    LogFormat,
    Scenario,
    demo_scenario,
)
from ingest.coverage import Coverage
from ingest.sources.base import RawRequest
from ingest.sources.lines import open_lines
from ingest.sources.sglang import SglangLog
from ingest.sources.vllm import VllmLog
from ingest.tenancy import Tenancy, TenancySettings

YEAR = 2026


@pytest.fixture(scope="module")
def language() -> Language:
    return load_language()


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory, language: Language) -> Scenario:
    return demo_scenario(7, tmp_path_factory.mktemp("demo"), language=language)


def read(log: EngineLog) -> tuple[list[RawRequest], Coverage]:
    coverage = Coverage()
    reader = VllmLog if log.format is LogFormat.VLLM else SglangLog
    with open_lines(log.path, coverage=coverage) as lines:
        return list(reader(lines, engine=log.engine, coverage=coverage, year=YEAR)), coverage


def read_all(scenario: Scenario) -> Iterator[RawRequest]:
    for log in scenario.logs:
        yield from read(log)[0]


def test_two_vllm_logs_and_one_of_sglang(scenario: Scenario) -> None:
    assert [log.format for log in scenario.logs] == ["vllm", "vllm", "sglang"]
    assert len({log.engine for log in scenario.logs}) == 3


def test_the_truth_has_the_demo_bleeds(scenario: Scenario) -> None:
    assert len(scenario.truth) == len(DEMO_BLEEDS) + REPEAT_VICTIMS
    by_id = {request.request_id: request for request in scenario.requests}
    for row in scenario.truth:
        victim, source = by_id[row.victim_request_id], by_id[row.source_request_id]
        ids = source.prompt_ids if row.source_field == "prompt" else source.response_ids
        taken = ids[row.source_start : row.source_end]
        found = victim.response_ids[row.victim_start : row.victim_end]
        same = sum(one == other for one, other in zip(taken, found, strict=True))
        assert same == row.run_tokens - len(row.noise_offsets)


def test_readers_get_every_request_id_for_id(scenario: Scenario) -> None:
    raw = {request.request_id: request for request in read_all(scenario)}
    assert len(raw) == len(scenario.requests)
    for request in scenario.requests:
        found = raw[request.request_id]
        assert tuple(found.prompt_ids or ()) == request.prompt_ids
        assert tuple(found.response_ids or ()) == request.response_ids
        assert found.prompt_loss is None
        assert found.response_loss is None
        assert found.engine == request.node


def test_readers_get_the_times(scenario: Scenario) -> None:
    raw = {request.request_id: request for request in read_all(scenario)}
    for request in scenario.requests:
        found = raw[request.request_id]
        assert found.ended_at_ms is not None
        started_s = found.started_at_ms / 1000 - scenario.epoch_s
        assert started_s == pytest.approx(request.ts, abs=1.001)
        assert found.ended_at_ms / 1000 - scenario.epoch_s == pytest.approx(
            request.ts_end, abs=1.001
        )


def test_tenant_rules_name_every_tenant(scenario: Scenario) -> None:
    tenancy = Tenancy(TenancySettings.model_validate({"rules": scenario.tenant_rules}))
    expected = {request.request_id: request.tenant for request in scenario.requests}
    assert {one.request_id: tenancy.tenant(one) for one in read_all(scenario)} == expected


def test_no_line_is_broken(scenario: Scenario) -> None:
    for log in scenario.logs:
        _, coverage = read(log)
        assert coverage.broken_by_reason == {}


def test_requests_interleave_in_the_order_of_time(scenario: Scenario) -> None:
    lines = scenario.logs[2].path.read_text(encoding="utf-8").splitlines()
    stamps = [line[1:20] for line in lines]
    assert stamps == sorted(stamps)
    events = [line.split('"event": "', 1)[1][:16] for line in lines if '"event": "' in line]
    assert events != sorted(events)


def test_same_seed_same_files(scenario: Scenario, tmp_path: Path, language: Language) -> None:
    again = demo_scenario(7, tmp_path, language=language)
    assert again.truth == scenario.truth
    for one, other in zip(again.logs, scenario.logs, strict=True):
        assert one.path.read_bytes() == other.path.read_bytes()
        assert one.engine == other.engine


def test_another_epoch_moves_the_times_only(tmp_path: Path, language: Language) -> None:
    moved = demo_scenario(7, tmp_path, epoch_s=1_780_000_000.0, language=language)
    first = next(log for log in moved.logs if log.format is LogFormat.SGLANG)
    assert first.engine == EngineId("engine-2")
    assert first.path.read_text(encoding="utf-8").startswith("[2026-05-28 ")
