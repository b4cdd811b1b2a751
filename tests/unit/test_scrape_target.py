"""One engine over HTTP: its kind is found, restarts are noticed, failures end what was known."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from detector.errors import ScrapeError
from ingest.schema_records import EngineRole, Quality
from ingest.scrape.http import Endpoint
from ingest.scrape.mapping import load_mappings, parse_mapping
from ingest.scrape.target import RETRY_MS, Identity, Target
from tests.unit.engine_server import EngineServer, answer, engine_server, sglang_page, vllm_page

REFRESH_MS = 600_000
LOADS = {
    "version": "0.5.23",
    "loads": [
        {
            "dp_rank": rank,
            "num_running_reqs": 0,
            "num_waiting_reqs": 0,
            "num_used_tokens": 5 + rank,
            "max_total_num_tokens": 100,
        }
        for rank in (0, 1)
    ],
}


@pytest.fixture
def server() -> Iterator[EngineServer]:
    with engine_server(metrics=vllm_page(usage=0.13), version='{"version":"0.33.0"}') as one:
        yield one


def target(server: EngineServer, identity: Identity | None = None, **more: str) -> Target:
    endpoint = Endpoint(server.url, timeout_s=5.0, max_bytes=1_000_000, **more)
    named = identity or Identity("e", "p")
    return Target(endpoint, named, load_mappings(), refresh_ms=REFRESH_MS)


def test_a_vllm_is_known_by_its_metrics(server: EngineServer) -> None:
    one = target(server)
    assert one.kind is None
    (sample,) = one.samples(7_000)
    assert one.kind == "vllm"
    assert (sample.engine_kind, sample.engine_version) == ("vllm", "0.33.0")
    assert (sample.engine, sample.kv_pool, sample.rank) == ("e", "p", None)
    assert (sample.sampled_at_ms, sample.unreleased_tokens) == (7_000, 208)
    assert set(one.problems) == {"/v1/models"}


def test_what_changes_only_with_a_restart_is_asked_once(server: EngineServer) -> None:
    one = target(server)
    for at_ms in (0, 5_000, 10_000):
        (sample,) = one.samples(at_ms)
        assert sample.engine_version == "0.33.0"
    assert server.asked.count("/version") == 1
    # what failed is asked again sooner
    one.samples(RETRY_MS)
    assert (server.asked.count("/version"), server.asked.count("/v1/models")) == (1, 2)
    one.samples(REFRESH_MS)
    assert server.asked.count("/version") == 2


def test_a_restart_begins_everything_anew(server: EngineServer) -> None:
    one = target(server)
    one.samples(0)
    assert one.samples(5_000)[0].unreleased_quality == Quality.EXACT
    server.pages["/metrics"] = vllm_page(usage=0.13, prompts=1.0)
    server.pages["/version"] = '{"version":"0.34.0"}'
    (sample,) = one.samples(10_000)
    assert sample.engine_version == "0.34.0"
    assert sample.unreleased_quality == Quality.ESTIMATE


def test_a_counter_that_is_gone_tells_of_a_restart(server: EngineServer) -> None:
    """Series with labels come with their first event, so a fresh SGLang has none."""
    idle = sglang_page(num_running_reqs=0, num_queue_reqs=0, num_used_tokens=9)
    server.pages = {"/metrics": sglang_page(num_requests_total=5) + idle}
    one = target(server)
    one.samples(0)
    assert one.samples(5_000)[0].unreleased_quality == Quality.EXACT
    server.pages = {"/metrics": idle}
    assert one.samples(10_000)[0].unreleased_quality == Quality.ESTIMATE
    assert one.samples(15_000)[0].unreleased_quality == Quality.EXACT


def test_a_counter_that_is_gone_from_its_rank_tells_of_a_restart_though_another_has_one(
    server: EngineServer,
) -> None:
    def page(rank: int, **counter: int) -> str:
        idle = {"num_running_reqs": 0, "num_queue_reqs": 0, "num_used_tokens": 9}
        return sglang_page(f'dp_rank="{rank}"', **idle, **counter)

    server.pages = {"/metrics": page(0, num_requests_total=1) + page(1, num_requests_total=100)}
    one = target(server)
    one.samples(0)
    one.samples(5_000)
    server.pages = {"/metrics": page(0, num_requests_total=2) + page(1)}
    assert {each.unreleased_quality for each in one.samples(10_000)} == {Quality.ESTIMATE}


def test_a_counter_that_moves_to_a_lower_rank_is_not_gone(server: EngineServer) -> None:
    """One without a rank belongs to the lowest that has been seen."""
    counter = sglang_page(num_requests_total=5)
    ranks = [
        "".join(
            sglang_page(
                f'dp_rank="{rank}"', num_running_reqs=0, num_queue_reqs=0, num_used_tokens=9
            )
            for rank in some
        )
        for some in ((1,), (0, 1))
    ]
    server.pages = {"/metrics": counter + ranks[0]}
    one = target(server)
    one.samples(0)
    one.samples(5_000)
    server.pages = {"/metrics": counter + ranks[1]}
    assert {each.rank: each.unreleased_quality for each in one.samples(10_000)}[1] == Quality.EXACT


def test_an_engine_that_is_away_gives_no_sample_and_idleness_begins_anew(
    server: EngineServer,
) -> None:
    one = target(server)
    one.samples(0)
    one.samples(5_000)
    page = server.pages["/metrics"]
    server.pages["/metrics"] = lambda handler: answer(handler, 500, b"")
    with pytest.raises(ScrapeError) as caught:
        one.samples(10_000)
    assert caught.value.reason == "status"
    server.pages["/metrics"] = page
    assert one.samples(15_000)[0].unreleased_quality == Quality.ESTIMATE


def test_an_sglang_without_metrics_is_known_by_its_loads() -> None:
    with engine_server(v1__loads=json.dumps(LOADS)) as server:
        one = target(server)
        samples = one.samples(0)
        assert one.kind == "sglang"
        assert [(s.rank, s.used_tokens, s.unreleased_quality) for s in samples] == [
            (0, 5, Quality.ESTIMATE),
            (1, 6, Quality.ESTIMATE),
        ]
        assert "/health" not in server.asked


def test_an_older_name_of_an_endpoint_is_asked_if_the_newer_is_not_there() -> None:
    info = json.dumps({"version": "0.5.2", "max_req_input_len": 506})
    page = sglang_page(num_running_reqs=0)
    with engine_server(metrics=page, get_server_info=info) as server:
        (sample,) = target(server).samples(0)
        assert (sample.engine_version, sample.max_input_tokens) == ("0.5.2", 506)


def test_a_role_is_told_by_the_engine_or_by_the_operator(server: EngineServer) -> None:
    info = json.dumps({"disaggregation_mode": "decode"})
    with engine_server(metrics=sglang_page(num_running_reqs=0), server_info=info) as other:
        assert target(other).samples(0)[0].role == EngineRole.DECODE
    identity = Identity("e", "p", role=EngineRole.PREFILL)
    assert target(server, identity).samples(0)[0].role == EngineRole.PREFILL


def test_an_own_mapping_reads_another_engine() -> None:
    text = """
mapping: 1
engine_kind: other
metrics_path: /stats
prefixes: ["other_"]
numbers: {used_tokens: {names: [other_used]}}
"""
    mappings = {"other": parse_mapping(text, where="own")}
    with engine_server(stats="other_used 9\n") as server:
        endpoint = Endpoint(server.url, timeout_s=5.0, max_bytes=1_000)
        one = Target(endpoint, Identity("e", "p", "other"), mappings, refresh_ms=1)
        (sample,) = one.samples(0)
    assert (sample.engine_kind, sample.used_tokens) == ("other", 9)
    assert (sample.unreleased_tokens, sample.unreleased_quality) == (None, Quality.UNKNOWN)


@pytest.mark.parametrize("page", ["", "python_gc_objects_collected_total 4\n", "<html></html>"])
@pytest.mark.parametrize("kind", ["auto", "vllm"])
def test_another_server_is_not_taken_for_an_engine(page: str, kind: str) -> None:
    with engine_server(metrics=page, version='{"version":"1"}') as server:
        with pytest.raises(ScrapeError) as caught:
            target(server, Identity("e", "p", kind)).samples(0)
        assert caught.value.reason == "unrecognized"


@pytest.mark.parametrize("body", ["{", "[" * 100_000, '{"version": 3}', "null"])
def test_broken_documents_leave_their_values_out(server: EngineServer, body: str) -> None:
    server.pages["/version"] = body
    (sample,) = target(server).samples(0)
    assert sample.engine_version is None
    assert sample.unreleased_tokens == 208


def test_a_missing_key_is_told(server: EngineServer, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("key\n")
    file.chmod(0o600)
    server.pages["/v1/models"] = lambda handler: (
        answer(handler, 200, '{"data":[{"max_model_len":512}]}')
        if handler.headers.get("Authorization") == "Bearer key"
        else answer(handler, 401, b"")
    )
    without = target(server)
    assert without.samples(0)[0].context_tokens is None
    assert without.problems["/v1/models"].reason == "unauthorized"
    assert target(server, token_file=str(file)).samples(0)[0].context_tokens == 512
