"""Samples derived from genuine metrics: what the ground truth of the captures says, no more."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.schema_records import EngineRole, Quality, RuntimeSample
from ingest.scrape.http import Endpoint
from ingest.scrape.mapping import load_mappings
from ingest.scrape.target import Identity, Target
from tests.unit.engine_server import EngineServer, engine_server

DOCUMENTS = {
    "/version": "get_version.json",
    "/v1/models": "get_v1_models.json",
    "/server_info": "get_server_info.json",
    "/v1/loads": "get_v1_loads.json",
}
"""Info endpoints as they were captured."""

VLLM_LEAK, SGLANG_LEAK = "vllm/e-fault-leak", "sglang/c-fault-leak"

GROUND_TRUTH = {
    VLLM_LEAK: ("runE_ground_truth.jsonl", "blocks_leaked", 32),
    SGLANG_LEAK: ("ground_truth.jsonl", "tokens_leaked", 1),
}
"""What the faults kept back: file, field, tokens for each."""


def folder(name: str) -> Path:
    return Path(os.environ["BLEEDWATCH_EVAL_DATA"]) / "engine-logs" / name


def text(path: Path) -> str:
    return subprocess.run(
        ["zstd", "-dcf", str(path)], capture_output=True, check=True
    ).stdout.decode()


def page(name: str, stem: str) -> str:
    (path,) = folder(name).glob(f"{stem}.prom*")
    return text(path)


def timeline(name: str) -> list[tuple[int, str]]:
    """Return the scrapes taken while traffic ran, with their times in milliseconds."""
    files = sorted((folder(name) / "metrics").iterdir())
    return [(int(float(path.name.split(".prom")[0]) * 1000), text(path)) for path in files]


@pytest.fixture
def server() -> Iterator[EngineServer]:
    with engine_server() as one:
        yield one


def target(server: EngineServer) -> Target:
    endpoint = Endpoint(server.url, timeout_s=10.0, max_bytes=8 * 2**20)
    return Target(endpoint, Identity("e", "p"), load_mappings(), refresh_ms=600_000)


def serve(server: EngineServer, name: str, *, loads: bool = False) -> None:
    """Serve the info endpoints of a capture; loads were captured at the end only."""
    for path, file in DOCUMENTS.items():
        content = (folder(name) / file).read_text() if (folder(name) / file).exists() else ""
        if content and "Not Found" not in content and (loads or path != "/v1/loads"):
            server.pages[path] = content


def at_idle(server: EngineServer, metrics: str) -> RuntimeSample:
    """Return the sample of a page that stays the same for five seconds."""
    server.pages["/metrics"] = metrics
    one = target(server)
    one.samples(0)
    (sample,) = one.samples(5_000)
    return sample


def leaks(name: str) -> list[tuple[int, int]]:
    """Return what the fault kept back: when, in ms, and how many tokens in all by then."""
    file, key, size = GROUND_TRUTH[name]
    rows = [json.loads(line) for line in (folder(name) / file).read_text().splitlines()]
    total, found = 0, []
    for row in rows:
        total += row[key] * size
        found.append((int(row["ts"] * 1000), total))
    return found


def test_vllm_unreleased_is_the_injected_leak(server: EngineServer) -> None:
    serve(server, VLLM_LEAK)
    sample = at_idle(server, page(VLLM_LEAK, "metrics_after_idle"))
    assert sample.unreleased_tokens == leaks(VLLM_LEAK)[-1][1] == 13 * 32
    assert sample.unreleased_quality == Quality.EXACT
    assert (sample.engine_kind, sample.engine_version) == ("vllm", "0.32.0")
    assert (sample.pool_tokens, sample.context_tokens) == (1_504, 512)
    assert sample.pool_usage_ratio == pytest.approx(13 / 47)
    assert sample.max_input_tokens is None
    assert sample.clear_failures_total is None
    assert sample.transfer_failures_total is None


@pytest.mark.parametrize("stem", ["metrics_after_idle", "metrics_after_probes"])
def test_vllm_without_a_fault_has_nothing_unreleased(server: EngineServer, stem: str) -> None:
    sample = at_idle(server, page("vllm/a-debug-text", stem))
    assert (sample.unreleased_tokens, sample.unreleased_quality) == (0, Quality.EXACT)


@pytest.mark.parametrize("loads", [True, False])
def test_sglang_unreleased_is_the_injected_leak(server: EngineServer, *, loads: bool) -> None:
    serve(server, SGLANG_LEAK, loads=loads)
    sample = at_idle(server, page(SGLANG_LEAK, "metrics_after_idle"))
    assert sample.unreleased_tokens == leaks(SGLANG_LEAK)[-1][1] == 273
    assert sample.unreleased_quality == Quality.EXACT
    assert (sample.engine_kind, sample.engine_version) == ("sglang", "0.5.23")
    assert (sample.pool_tokens, sample.context_tokens, sample.max_input_tokens) == (1536, 512, 506)
    assert (sample.used_tokens, sample.evictable_tokens) == (273, 1_208)
    assert sample.role == EngineRole.BOTH
    assert sample.metadata_mismatches_total is None
    assert sample.transfer_failures_total is None


def test_sglang_flush_erases_the_leak(server: EngineServer) -> None:
    sample = at_idle(server, page(SGLANG_LEAK, "metrics_after_flush"))
    assert (sample.unreleased_tokens, sample.unreleased_quality) == (0, Quality.EXACT)


@pytest.mark.parametrize("stem", ["metrics_before", "metrics_just_after", "metrics_after_idle"])
def test_sglang_without_a_fault_has_nothing_unreleased(server: EngineServer, stem: str) -> None:
    sample = at_idle(server, page("sglang/a-level3-json", stem))
    assert (sample.unreleased_tokens or 0) == 0
    assert sample.unreleased_quality in (Quality.EXACT, Quality.UNKNOWN)


@pytest.mark.parametrize(
    "name", ["vllm/a-debug-text", "vllm/c-json-dictconfig", "sglang/a-level3-json"]
)
def test_traffic_without_a_fault_never_shows_a_leak_for_sure(
    server: EngineServer, name: str
) -> None:
    one = target(server)
    seen = []
    for at_ms, metrics in timeline(name):
        server.pages["/metrics"] = metrics
        seen += one.samples(at_ms)
    assert len(seen) == len(timeline(name))
    sure = {s.unreleased_tokens for s in seen if s.unreleased_quality == Quality.EXACT}
    assert sure <= {0}


@pytest.mark.parametrize("name", GROUND_TRUTH)
def test_traffic_with_a_fault_shows_for_sure_just_what_is_kept_back_by_then(
    server: EngineServer, name: str
) -> None:
    one = target(server)
    sure = 0
    for at_ms, metrics in timeline(name):
        server.pages["/metrics"] = metrics
        (sample,) = one.samples(at_ms)
        if sample.unreleased_quality == Quality.EXACT:
            sure += 1
            kept = [total for when_ms, total in leaks(name) if when_ms < at_ms]
            assert sample.unreleased_tokens == (kept[-1] if kept else 0)
    assert sure
