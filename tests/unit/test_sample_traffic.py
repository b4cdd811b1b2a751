"""Sample traffic: seeded, shaped like real traffic, and hard enough for a plain matcher."""

import time
from collections import defaultdict
from random import Random

import pytest

from detector.sample.chatml import content_spans, messages_of
from detector.sample.language import Ids, Language, load_language
from detector.sample.tokenizer import IM_END, IM_START
from detector.sample.traffic import (
    COMMON_TENANTS,
    SampleRequest,
    Traffic,
    TrafficSettings,
    generate,
)

WINDOW_S = 300.0


@pytest.fixture(scope="module")
def language() -> Language:
    return load_language()


@pytest.fixture(scope="module")
def traffic(language: Language) -> Traffic:
    return generate(Random(1), language, TrafficSettings())


def test_same_seed_same_traffic(language: Language, traffic: Traffic) -> None:
    again = generate(Random(1), language, TrafficSettings())
    assert again.requests == traffic.requests
    assert again.history == traffic.history
    assert generate(Random(2), language, TrafficSettings()).requests != traffic.requests


def test_demo_size_is_quick(language: Language) -> None:
    start = time.process_time()
    generate(Random(3), language, TrafficSettings())
    assert time.process_time() - start < 5.0


def test_counts_and_order(traffic: Traffic) -> None:
    settings = traffic.settings
    assert len(traffic.requests) == settings.requests
    assert len(traffic.history) == settings.history_requests + COMMON_TENANTS
    assert len({request.request_id for request in traffic.requests}) == settings.requests
    times = [request.ts for request in traffic.requests]
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] <= settings.duration_s
    assert all(request.ts < request.ts_first <= request.ts_end for request in traffic.requests)
    assert {request.tenant for request in traffic.requests} == {t.name for t in traffic.tenants}
    assert {request.node for request in traffic.requests} == set(traffic.engines)
    tokens = sum(len(one.prompt_ids) + len(one.response_ids) for one in traffic.requests)
    assert 200_000 < tokens < 450_000


def test_history_is_before_and_has_no_node(traffic: Traffic) -> None:
    assert all(-86_400 <= request.ts < 0 for request in traffic.history)
    assert {request.node for request in traffic.history} == {None}


def test_sessions_send_their_history_again(traffic: Traffic) -> None:
    sessions: dict[str, list[SampleRequest]] = defaultdict(list)
    for request in traffic.requests:
        sessions[request.session].append(request)
    long = [requests for requests in sessions.values() if len(requests) > 1]
    assert len(long) > 50
    for first, second, *_ in long:
        earlier, later = messages_of(first.prompt_ids), messages_of(second.prompt_ids)
        assert later[: len(earlier)] == earlier
        assert later[len(earlier)].ids == tuple(i for i in first.response_ids if i != IM_END)
        assert first.ts_end < second.ts
        assert (first.tenant, first.node) == (second.tenant, second.node)


def test_markers_stand_only_where_the_template_puts_them(traffic: Traffic) -> None:
    for request in traffic.requests:
        for span in content_spans(request.prompt_ids):
            content = request.prompt_ids[span.start : span.end]
            assert not {IM_START, IM_END} & set(content)
        end = (IM_END,) if request.finish_reason == "stop" else ()
        body = request.response_ids[: len(request.response_ids) - len(end)]
        assert request.response_ids == (*body, *end)
        assert not {IM_START, IM_END} & set(body)


def test_tenants_share_a_public_prompt_and_public_questions(traffic: Traffic) -> None:
    askers: dict[Ids, set[str]] = defaultdict(set)
    answers: dict[Ids, set[str]] = defaultdict(set)
    prompts: dict[Ids, set[str]] = defaultdict(set)
    for request in traffic.requests:
        messages = messages_of(request.prompt_ids)
        prompts[messages[0].ids].add(request.tenant)
        askers[messages[-1].ids].add(request.tenant)
        if len(request.response_ids) > 60:  # not one of the refusals
            answers[request.response_ids].add(request.tenant)
    assert max(len(tenants) for tenants in prompts.values()) >= 3
    assert sum(len(tenants) > 1 for tenants in askers.values()) >= 5
    assert sum(len(tenants) > 1 for tenants in answers.values()) >= 2


def test_a_plain_matcher_flags_many_clean_answers(traffic: Traffic) -> None:
    flagged = sum(map(bool, _plain_matches(traffic.requests)))
    assert 0.05 < flagged / len(traffic.requests) < 0.5


def _plain_matches(requests: tuple[SampleRequest, ...]) -> list[bool]:
    """Per answer: has it ten tokens that another tenant had in the five minutes before?"""
    seen: dict[Ids, list[tuple[float, str]]] = defaultdict(list)
    for request in requests:
        for ids in (request.prompt_ids, request.response_ids):
            for run in {ids[start : start + 10] for start in range(len(ids) - 9)}:
                seen[run].append((request.ts, request.tenant))
    return [
        any(
            tenant != request.tenant and request.ts - WINDOW_S <= ts < request.ts
            for start in range(len(request.response_ids) - 9)
            for ts, tenant in seen[request.response_ids[start : start + 10]]
        )
        for request in requests
    ]
