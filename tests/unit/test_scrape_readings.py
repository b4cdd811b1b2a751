"""What engines of several versions, ranks and shapes tell, as samples: absent is never zero."""

from typing import Any

import msgspec
import pytest

from detector.errors import ScrapeError
from ingest.schema_records import EngineRole, Quality, RuntimeSample
from ingest.scrape.exposition import parse_exposition
from ingest.scrape.mapping import Mapping, load_mappings
from ingest.scrape.reading import MAX_RANKS, read_ranks
from ingest.scrape.samples import EngineName, sample_of
from ingest.scrape.unreleased import RankMemory
from tests.unit.engine_server import SGLANG_LABELS, sglang_page, vllm_page

MAPPINGS = load_mappings()
SGLANG, VLLM = MAPPINGS["sglang"], MAPPINGS["vllm"]
ABSENT = {"engine_version", "role", "rank", "unreleased_tokens"}

IDLE = {"num_running_reqs": 0, "num_queue_reqs": 0}


def samples(mapping: Mapping, page: str | None, *documents: object) -> list[RuntimeSample]:
    """Return the samples of a page that stays the same for five seconds."""
    names = mapping.metric_names()
    metrics = None if page is None else parse_exposition(page, names.__contains__)
    answered = list(zip(mapping.documents, documents, strict=False))
    name = EngineName("e", "p", None, None)
    made = []
    for reading in read_ranks(mapping, metrics, answered):
        memory = RankMemory()
        sample_of(reading, mapping, memory, name, 0)
        made.append(sample_of(reading, mapping, memory, name, 5_000))
    return made


def sample(mapping: Mapping, page: str | None, *documents: object) -> RuntimeSample:
    (only,) = samples(mapping, page, *documents)
    return only


def known(one: RuntimeSample) -> dict[str, Any]:
    """Return the fields that are not absent, but names and times."""
    names = {"schema", "engine", "kv_pool", "sampled_at_ms", "engine_kind"}
    fields = msgspec.structs.asdict(one).items()
    return {name: value for name, value in fields if value is not None and name not in names}


def test_vllm_counts_usable_blocks_in_tokens() -> None:
    assert known(sample(VLLM, vllm_page(usage=0.13))) == {
        "pool_tokens": 1_600,
        "used_tokens": 208,
        "running_requests": 0,
        "queued_requests": 0,
        "unreleased_tokens": 208,
        "unreleased_quality": Quality.EXACT,
        "pool_usage_ratio": 0.13,
    }


def test_vllm_under_load_says_nothing_of_what_is_unreleased() -> None:
    busy = sample(VLLM, vllm_page(usage=0.5, running=3))
    assert busy.used_tokens == 800
    assert busy.unreleased_tokens is None
    assert busy.unreleased_quality == Quality.UNKNOWN


def test_vllm_whose_share_is_not_of_whole_blocks_is_an_estimate() -> None:
    assert sample(VLLM, vllm_page(usage=0.134)).unreleased_quality == Quality.ESTIMATE


def test_vllm_with_a_connector_is_an_estimate() -> None:
    page = vllm_page(usage=0.13) + 'vllm:nixl_num_failed_transfers_total{engine="0"} 4.0\n'
    one = sample(VLLM, page)
    assert (one.unreleased_tokens, one.unreleased_quality) == (208, Quality.ESTIMATE)
    assert one.transfer_failures_total == 4
    assert one.metadata_mismatches_total is None


def test_vllm_counters_of_a_connector_are_told_apart() -> None:
    page = vllm_page() + (
        'vllm:nixl_num_kv_expired_reqs_total{engine="0"} 2.0\n'
        'vllm:mooncake_num_kv_expired_reqs_total{engine="0"} 3.0\n'
        'vllm:nixl_num_notifications_after_expiry_total{engine="0"} 1.0\n'
    )
    one = sample(VLLM, page)
    assert (one.clear_failures_total, one.metadata_mismatches_total) == (5, 1)
    assert one.transfer_failures_total is None


@pytest.mark.parametrize("name", ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"])
def test_a_renamed_metric_is_the_same(name: str) -> None:
    page = vllm_page(usage=0.25).replace("vllm:kv_cache_usage_perc", name)
    assert sample(VLLM, page).used_tokens == 400


def test_vllm_before_its_blocks_are_known_has_no_sizes() -> None:
    one = sample(VLLM, vllm_page(usage=0.25).replace('num_gpu_blocks="101"', 'x="101"'))
    assert (one.pool_tokens, one.used_tokens, one.unreleased_tokens) == (None, None, None)
    assert one.pool_usage_ratio == 0.25


def test_vllm_info_documents_give_version_and_limit() -> None:
    models = {"data": [{"id": "m", "max_model_len": 512}]}
    one = sample(VLLM, vllm_page(), {"version": "0.33.0"}, models)
    assert (one.engine_version, one.context_tokens, one.role) == ("0.33.0", 512, None)


def test_sglang_evictable_cache_is_not_unreleased() -> None:
    page = sglang_page(
        **IDLE,
        max_total_num_tokens=1_000,
        kv_available_tokens=200,
        kv_evictable_tokens=800,
        kv_used_tokens=0,
        token_usage=0.0,
    )
    one = sample(SGLANG, page)
    assert (one.evictable_tokens, one.used_tokens) == (800, 0)
    assert (one.unreleased_tokens, one.unreleased_quality) == (0, Quality.EXACT)
    assert one.pool_usage_ratio == 0


def test_sglang_identity_of_its_sums_does_not_hide_a_leak() -> None:
    values = {"max_total_num_tokens": 1_000, "kv_evictable_tokens": 600}
    leaking = sglang_page(**IDLE, **values, kv_available_tokens=150, kv_used_tokens=250)
    sound = sglang_page(**IDLE, **values, kv_available_tokens=400, kv_used_tokens=0)
    # total = available + evictable + used holds in both
    assert sample(SGLANG, leaking).unreleased_tokens == 250
    assert sample(SGLANG, sound).unreleased_tokens == 0


def test_sglang_before_its_kv_gauges() -> None:
    one = sample(SGLANG, sglang_page(**IDLE, num_used_tokens=40, token_usage=0.04))
    assert (one.unreleased_tokens, one.unreleased_quality) == (40, Quality.EXACT)
    assert (one.pool_tokens, one.evictable_tokens, one.context_tokens) == (None, None, None)
    assert one.pool_usage_ratio == 0.04


def test_sglang_tokens_of_streaming_sessions_are_held_on_purpose() -> None:
    page = sglang_page(**IDLE, kv_used_tokens=500, streaming_session_held_tokens=480)
    assert sample(SGLANG, page).unreleased_tokens == 20


@pytest.mark.parametrize(
    "queue", ["num_prefill_inflight_queue_reqs", "num_decode_deferred_kv_release_reqs"]
)
def test_sglang_that_transfers_or_releases_later_is_not_idle(queue: str) -> None:
    page = sglang_page(**IDLE, kv_used_tokens=500, **{queue: 1})
    assert sample(SGLANG, page).unreleased_quality == Quality.UNKNOWN


def test_sglang_token_sum_of_the_last_decode_step_does_not_count_at_idle() -> None:
    page = sglang_page(**IDLE, kv_used_tokens=273, decode_sum_seq_lens=241)
    assert sample(SGLANG, page).unreleased_tokens == 273


def test_sglang_fullest_pool_is_the_usage() -> None:
    page = sglang_page(**IDLE, full_token_usage=0.31, swa_token_usage=0.92, token_usage=0.9)
    assert sample(SGLANG, page).pool_usage_ratio == 0.92


def test_sglang_failures() -> None:
    flush = 'sglang:http_responses_total{endpoint="/flush_cache",method="POST",status_code="%s"} %d'
    page = "\n".join(
        [
            sglang_page(
                **IDLE, num_transfer_failed_reqs_total=3, num_bootstrap_failed_reqs_total=4
            ),
            flush % ("400", 5),
            flush % ("200", 7),
            "",
        ]
    )
    one = sample(SGLANG, page)
    assert one.clear_failures_total == 5
    assert one.transfer_failures_total == 7
    assert one.metadata_mismatches_total is None


def test_a_counter_whose_metric_is_there_is_zero_and_one_that_is_not_is_absent() -> None:
    other = 'sglang:http_responses_total{endpoint="/metrics",status_code="200"} 9.0\n'
    assert sample(SGLANG, sglang_page(**IDLE) + other).clear_failures_total == 0
    assert sample(SGLANG, sglang_page(**IDLE)).clear_failures_total is None


def test_sglang_documents_are_fresher_than_its_metrics() -> None:
    entry = {
        "dp_rank": 0,
        "num_running_reqs": 0,
        "num_waiting_reqs": 0,
        "num_used_tokens": 12,
        "max_total_num_tokens": 1_536,
        "disaggregation": {"mode": "null"},
    }
    loads = {"version": "0.5.23", "loads": [entry]}
    info = {"version": "0.5.23", "context_length": None, "max_req_input_len": 506}
    info["max_total_tokens"] = 2_048
    page = sglang_page(num_running_reqs=2, num_queue_reqs=1, kv_used_tokens=90, context_len=512)
    one = sample(SGLANG, page, loads, info)
    assert (one.used_tokens, one.running_requests, one.queued_requests) == (12, 0, 0)
    assert (one.context_tokens, one.max_input_tokens) == (512, 506)
    assert (one.pool_tokens, one.configured_pool_tokens) == (1_536, 2_048)
    assert (one.engine_version, one.role) == ("0.5.23", EngineRole.BOTH)
    # the metrics are of earlier: what they tell of sessions may be over
    assert (one.unreleased_tokens, one.unreleased_quality) == (12, Quality.ESTIMATE)
    one = sample(SGLANG, page.replace("90", "12"), loads, info)
    assert (one.unreleased_tokens, one.unreleased_quality) == (12, Quality.EXACT)


def test_sglang_without_metrics_is_an_estimate() -> None:
    """Without them nothing tells what sessions hold."""
    entry = {"dp_rank": 0, "num_running_reqs": 0, "num_waiting_reqs": 0, "num_used_tokens": 12}
    one = sample(SGLANG, None, {"loads": [entry]})
    assert (one.unreleased_tokens, one.unreleased_quality) == (12, Quality.ESTIMATE)


def test_ranks_have_a_pool_each() -> None:
    page = vllm_page(usage=0.1) + (
        'vllm:num_requests_running{engine="1",model_name="m"} 0.0\n'
        'vllm:num_requests_waiting{engine="1",model_name="m"} 0.0\n'
        'vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.02\n'
        'vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="101"} 1.0\n'
    )
    assert [one.unreleased_tokens for one in samples(VLLM, page)] == [160, 32]


def test_ranks_tell_their_own_counters_and_the_first_those_of_the_engine() -> None:
    ranked = SGLANG_LABELS + ',dp_rank="%d"'
    flush = 'sglang:http_responses_total{endpoint="/flush_cache",status_code="400"} 5.0\n'
    page = flush + "".join(
        sglang_page(ranked % rank, **IDLE, num_transfer_failed_reqs_total=rank + 1)
        for rank in (0, 1)
    )
    first, second = samples(SGLANG, page)
    assert (first.transfer_failures_total, second.transfer_failures_total) == (1, 2)
    assert (first.clear_failures_total, second.clear_failures_total) == (5, None)


def test_replicas_of_a_rank_are_counted_once() -> None:
    pages = [
        sglang_page(SGLANG_LABELS.replace('tp_rank="0"', f'tp_rank="{rank}"'), **IDLE, **values)
        for rank, values in (
            (1, {"kv_used_tokens": 99.0, "num_transfer_failed_reqs_total": 3.0}),
            (0, {"kv_used_tokens": 7.0, "num_transfer_failed_reqs_total": 3.0}),
        )
    ]
    one = sample(SGLANG, "".join(pages))
    assert (one.used_tokens, one.transfer_failures_total) == (7, 3)


def test_series_that_disagree_on_one_gauge_leave_it_unknown() -> None:
    page = sglang_page(**IDLE, kv_used_tokens=7)
    twice = sglang_page(SGLANG_LABELS + ',pid="9"', kv_used_tokens=8)
    assert sample(SGLANG, page + twice).used_tokens is None


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-1.0", "1e300"])
def test_what_is_no_size_is_absent(value: str) -> None:
    page = sglang_page(**IDLE, num_transfer_failed_reqs_total=3).replace(" 3", f" {value}")
    page += sglang_page(kv_used_tokens=3, max_total_num_tokens=3).replace(" 3", f" {value}")
    one = sample(SGLANG, page)
    assert (one.used_tokens, one.pool_tokens, one.transfer_failures_total) == (None, None, None)


def test_a_share_of_more_than_twice_the_pool_is_absent() -> None:
    one = sample(VLLM, vllm_page(usage=27.6))
    assert (one.pool_usage_ratio, one.used_tokens) == (None, None)


@pytest.mark.parametrize("text", ["x" * 600, "0.33 of acme", "", "{}"])
def test_a_version_is_a_version_or_absent(text: str) -> None:
    assert sample(VLLM, vllm_page(), {"version": text}).engine_version is None


@pytest.mark.parametrize("content", [None, [], {"loads": 3}, {"loads": [{"dp_rank": "x"}]}, "x", 4])
def test_documents_of_another_shape_say_nothing(content: object) -> None:
    assert known(sample(SGLANG, None, content, content)) == {"unreleased_quality": Quality.UNKNOWN}


def test_so_many_ranks_are_no_engine() -> None:
    page = "".join(f'vllm:num_requests_running{{engine="{n}"}} 0\n' for n in range(MAX_RANKS + 1))
    with pytest.raises(ScrapeError, match="ranks"):
        samples(VLLM, page)
