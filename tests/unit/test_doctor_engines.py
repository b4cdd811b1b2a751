"""What engines answer the doctor, over HTTP, and what it says to each fault."""

import json
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from detector.config.load import load_settings
from detector.doctor import engines
from detector.doctor.engine_evidence import clock_ahead
from detector.doctor.facts import Facts
from detector.doctor.verdicts import Level
from ingest.scrape.http import Answer
from tests.unit.engine_server import EngineServer, engine_server, sglang_page, vllm_page

RIGHT = {
    "version": "0.5.23",
    "context_length": 512,
    "log_requests": True,
    "log_requests_level": 3,
    "log_requests_format": "json",
    "incremental_streaming_output": False,
    "enable_metrics": True,
    "return_input_ids": True,
    "allow_auto_truncate": False,
    "kv_events_config": "{}",
}

GAUGES = {
    "num_running_reqs": 0,
    "num_queue_reqs": 0,
    "max_total_num_tokens": 100,
    "kv_used_tokens": 0,
    "token_usage": 0,
    "context_len": 512,
}


def facts(*servers: EngineServer, **more: Any) -> Facts:
    targets = [
        {"url": server.url, "engine": f"e{number}", **more} for number, server in enumerate(servers)
    ]
    flags = [f"scrape.targets={json.dumps(targets)}", "scrape.timeout_ms=5000"]
    return Facts(load_settings(environment={}, assignments=flags).settings)


def sglang(**info: Any) -> Any:
    """Return a server of an SGLang whose flags are right but for `info`."""
    return engine_server(metrics=sglang_page(**GAUGES), server_info=json.dumps({**RIGHT, **info}))


def test_an_engine_that_hides_nothing() -> None:
    with sglang() as server:
        given = facts(server)
        for probe in (engines.metrics, engines.flags, engines.clock):
            assert [verdict.level for verdict in probe(given)] == [Level.OK]
        assert list(engines.pools(given)) == []


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("log_requests", False, "--log-requests;"),
        ("log_requests_level", 2, "--log-requests-level 3"),
        ("log_requests_format", "text", "--log-requests-format json"),
        ("incremental_streaming_output", True, "no --incremental-streaming-output"),
        ("enable_metrics", False, "--enable-metrics"),
    ],
)
def test_a_flag_that_hides_something_is_told_with_fix_and_cost(
    field: str, value: object, said: str
) -> None:
    with sglang(**{field: value}) as server:
        (verdict,) = engines.flags(facts(server))
    assert verdict.level is Level.WARNING
    assert f"start it with {said}" in verdict.next_step
    assert "costs" in verdict.next_step


def test_an_older_version_is_not_asked_for_newer_flags() -> None:
    with sglang(version="0.5.2", log_requests_format="text") as server:
        assert [verdict.level for verdict in engines.flags(facts(server))] == [Level.OK]


def test_what_only_sharpens_the_view_is_no_warning() -> None:
    with sglang(return_input_ids=False, kv_events_config=None) as server:
        assert {verdict.level for verdict in engines.flags(facts(server))} == {Level.OK}


def test_an_engine_that_does_not_tell_its_flags() -> None:
    with engine_server(metrics=vllm_page(), version='{"version":"0.33.0"}') as server:
        given = facts(server)
        (verdict,) = engines.flags(given)
        assert verdict.level is Level.UNKNOWN
        assert "--flags vllm=0.33.0" in verdict.next_step
        (verdict,) = engines.metrics(given)
        assert verdict.level is Level.WARNING
        assert "context_tokens" in verdict.found


@pytest.mark.parametrize(
    ("kind", "said"), [("sglang", "--enable-metrics"), ("vllm", "--disable-log-stats")]
)
def test_metrics_that_are_off(kind: str, said: str) -> None:
    with engine_server(version='{"version":"1"}') as server:
        (verdict,) = engines.metrics(facts(server, kind=kind))
    # vLLM still tells its version, and nothing else
    assert verdict.level is Level.ERROR
    assert said in verdict.next_step


def test_an_sglang_without_metrics_gives_half_a_sample() -> None:
    loads = {"loads": [{"dp_rank": 0, "num_used_tokens": 4, "num_running_reqs": 0}]}
    with engine_server(v1__loads=json.dumps(loads)) as server:
        off, seen = engines.metrics(facts(server))
    assert (off.level, off.next_step) == (Level.WARNING, "start SGLang with --enable-metrics")
    assert seen.level is Level.WARNING


def test_an_engine_that_is_down_and_none_at_all() -> None:
    with engine_server() as server:
        given = facts(server)
    (verdict,) = engines.metrics(given)
    assert verdict.level is Level.ERROR
    assert "nothing answers" in verdict.found
    assert list(engines.flags(given)) == list(engines.clock(given)) == []
    (verdict,) = engines.metrics(facts())
    assert (verdict.level, verdict.subject) == (Level.WARNING, "scrape.targets")


def test_targets_that_cannot_be_are_told_once() -> None:
    with engine_server() as server:
        given = facts(server, kind="other")
        (verdict,) = engines.metrics(given)
        assert "no mapping" in verdict.found
        assert not [*engines.flags(given), *engines.clock(given), *engines.pools(given)]


def at(ahead_s: float) -> Any:
    """Return a page of /version whose clock is so far ahead."""

    def page(handler: BaseHTTPRequestHandler) -> None:
        body = b'{"version":"0.33.0"}'
        handler.send_response_only(200)
        handler.send_header("Date", formatdate(time.time() + ahead_s, usegmt=True))
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return page


@pytest.mark.parametrize(
    ("ahead_s", "level", "said"),
    [(20, Level.WARNING, "ahead of"), (-600, Level.WARNING, "behind"), (600, Level.ERROR, "ahead")],
)
def test_a_clock_that_is_wrong(ahead_s: float, level: Level, said: str) -> None:
    with engine_server(metrics=vllm_page(), version=at(ahead_s)) as server:
        (verdict,) = engines.clock(facts(server))
    assert verdict.level is level
    assert said in verdict.found


def test_a_time_that_is_none_says_nothing() -> None:
    assert clock_ahead(Answer("", ""), middle_s=0.0) is None
    assert clock_ahead(Answer("", "yesterday"), middle_s=0.0) is None


def test_engines_that_share_memory_need_one_pool() -> None:
    with sglang(disaggregation_mode="prefill") as server:
        (verdict,) = engines.pools(facts(server))
        assert verdict.level is Level.WARNING
        assert list(engines.pools(facts(server, kv_pool="shared"))) == []
