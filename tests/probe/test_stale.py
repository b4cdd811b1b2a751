"""A probe is stale as soon as an engine runs something else than what passed."""

from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from prometheus_client import CollectorRegistry, generate_latest

from detector.probe.budget import Budget
from detector.probe.engines import engines_at
from detector.probe.fingerprint import Fingerprint, changes
from detector.probe.record import Record, read_record, write_record
from detector.probe.watch import ProbeWatch
from detector.sample.language import Language, load_language
from exporters.engine_metrics import register_engines
from exporters.engine_state import EnginesState
from ingest.scrape.settings import ScrapeSettings, TargetSettings
from tests.fakes.http_engine import EngineOptions, http_engine
from tests.probe.kit import probed
from tests.unit.engine_server import engine_server, sglang_page

POOL: Final = 4_096
QUICK: Final = ("usage",)


@pytest.fixture(scope="module")
def language() -> Language:
    return load_language()


def options(**changed: Any) -> EngineOptions:
    given: dict[str, Any] = {"kind": "sglang", "pool_tokens": POOL, "context_tokens": POOL}
    return EngineOptions(**given | changed)


def recorded(language: Language, path: Path) -> Record:
    """Probe an engine and keep the record."""
    with http_engine(language, options()) as engine:
        record = probed(engine, only=QUICK).record
    write_record(record, str(path))
    return record


def looked(url: str, path: Path) -> ProbeWatch:
    """Return a watch that has looked once."""
    target = TargetSettings(url=url, engine="e", probe_file=str(path))
    watch = ProbeWatch(ScrapeSettings(targets=(target,)))
    watch.close()
    watch.look()
    return watch


@pytest.mark.parametrize(
    ("changed", "is_stale"),
    [
        ({}, False),
        ({"pool_tokens": POOL * 2}, True),
        ({"context_tokens": POOL // 2}, True),
        ({"version": "0.5.22"}, True),
        ({"model": "other"}, True),
    ],
    ids=["same", "pool", "context", "version", "model"],
)
def test_what_runs_is_compared_with_what_passed(
    language: Language, tmp_path: Path, changed: dict[str, Any], *, is_stale: bool
) -> None:
    path = tmp_path / "probe.json"
    assert recorded(language, path).passed
    with http_engine(language, options(**changed)) as engine:
        assert looked(engine.url, path).stale() == {"e": is_stale}


def test_a_probe_that_did_not_pass_is_stale(language: Language, tmp_path: Path) -> None:
    path = tmp_path / "probe.json"
    write_record(msgspec.structs.replace(recorded(language, path), passed=False), str(path))
    with http_engine(language, options()) as engine:
        assert looked(engine.url, path).stale() == {"e": True}


@pytest.mark.parametrize("content", [None, "{}", "no json", '{"url": 1}'])
def test_a_record_that_cannot_be_read_is_stale(
    language: Language, tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "probe.json"
    if content is not None:
        path.write_text(content)
    with http_engine(language, options()) as engine:
        assert looked(engine.url, path).stale() == {"e": True}


def test_an_engine_that_does_not_answer_says_nothing(language: Language, tmp_path: Path) -> None:
    path = tmp_path / "probe.json"
    recorded(language, path)
    assert looked("http://127.0.0.1:9", path).stale() == {}


def test_the_metric_tells_it() -> None:
    registry = CollectorRegistry(auto_describe=False)

    class Source:
        def engines(self) -> EnginesState:
            return EnginesState(probe_stale={"old": True, "new": False})

    register_engines(Source(), registry)
    page = generate_latest(registry).decode()
    assert 'bleedwatch_engine_probe_stale{engine="old"} 1.0' in page
    assert 'bleedwatch_engine_probe_stale{engine="new"} 0.0' in page


def test_flags_are_kept_without_secrets_and_without_what_each_start_makes_anew(
    tmp_path: Path,
) -> None:
    told = {"version": "0.5.23", "api_key": "s3cret", "random_seed": 7, "page_size": 16}
    told |= {"enable_kv_checksum": True, "max_total_tokens": 4_096, "hf_token": "s3cret"}
    path = tmp_path / "probe.json"
    page = msgspec.json.encode(told).decode()
    with engine_server(metrics=sglang_page(num_running_reqs=0), server_info=page) as one:
        budget = Budget(requests=20, seconds=60.0)
        (kept,) = engines_at((one.url,), budget, token_file=None, ca_file=None).fingerprints
    assert kept.flags == {"enable-kv-checksum": "on", "max-total-tokens": "4096", "page-size": "16"}
    record = Record(
        url=one.url, started_at_ms=0, ended_at_ms=1, passed=True, requests=1, skipped=[],
        configurations=[kept], checks=[],
    )  # fmt: skip
    write_record(record, str(path))
    assert read_record(str(path)) == record
    assert "s3cret" not in path.read_text()


def test_changes_are_named_without_values() -> None:
    before = Fingerprint(kind="vllm", version="0.32.0", pool_tokens=1, flags={"a": "1", "b": "2"})
    now = Fingerprint(kind="vllm", version="0.33.0", pool_tokens=1, flags={"b": "3"})
    assert changes(before, now) == ["version", "--a", "--b"]
    assert changes(before, before) == []
