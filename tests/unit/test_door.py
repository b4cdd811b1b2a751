"""The door: hashes at once, splits, bounds, and counts what it refuses."""

import logging
from typing import Any

import numpy as np
import pytest

from detector.model import MAX_SEQUENCE_TOKENS, PART_OVERLAP, Kind, Role, Span
from detector.sketch.token_table import MAX_TOKEN_ID, Secret, TokenTable
from ingest.chat_template import ChatTemplate, ChatTemplateSettings
from ingest.coverage import Coverage
from ingest.door import Door, split
from ingest.limits import MAX_PARTS, MAX_SIDE_TOKENS
from ingest.schema_records import RequestRow
from ingest.sources.base import RawRequest
from ingest.tenancy import Tenancy, TenancySettings

KEYS = Secret(bytes(range(32))).keys()
TABLE = TokenTable(KEYS.hash_key, key_id=KEYS.key_id)


def _door(coverage: Coverage | None = None, **more: Any) -> Door:
    tenancy = Tenancy(TenancySettings())
    template = ChatTemplate(ChatTemplateSettings())
    return Door(TABLE, tenancy, template, coverage or Coverage(), **more)


def _request(**more: Any) -> RawRequest:
    fields: dict[str, Any] = {
        "request_id": "r",
        "started_at_ms": 1000,
        "ended_at_ms": 3000,
        "prompt_ids": [151644, 872, 198, 5, 151645],
        "response_ids": [7, 8],
        "identity": {"tenant": "acme"},
    }
    return RawRequest(**(fields | more))


def test_a_request_becomes_a_prompt_and_a_response() -> None:
    request = _request(
        engine="e",
        kv_pool="p",
        model="m",
        account="a",
        parent_id="r0",
        session="s",
        end_user="u",
        finish_reason="stop",
        status=200,
        reported_prompt_tokens=5,
        gateway_cache_hit=True,
    )
    prompt, response = _door().sequences(request)
    assert (prompt.kind, response.kind) == (Kind.PROMPT, Kind.RESPONSE)
    assert (prompt.started_at_ms, prompt.ended_at_ms) == (1000, 1000)
    assert (response.started_at_ms, response.ended_at_ms) == (1000, 3000)
    assert prompt.token_hashes.tolist() == TABLE.hash([151644, 872, 198, 5, 151645]).tolist()
    assert response.token_hashes.tolist() == TABLE.hash([7, 8]).tolist()
    assert prompt.spans == (
        Span(Role.TEMPLATE, 0, 3),
        Span(Role.USER, 3, 4),
        Span(Role.TEMPLATE, 4, 5),
    )
    assert response.spans == ()
    for sequence in (prompt, response):
        assert (sequence.tenant, sequence.request_id) == ("acme", "r")
        assert (sequence.engine, sequence.kv_pool, sequence.model) == ("e", "p", "m")
        assert (sequence.account, sequence.parent_id, sequence.session) == ("a", "r0", "s")
        assert (sequence.end_user, sequence.finish_reason, sequence.status) == ("u", "stop", 200)
        assert (sequence.reported_prompt_tokens, sequence.gateway_cache_hit) == (5, True)
        assert (sequence.prompt_token_count, sequence.key_id) == (5, KEYS.key_id)
        assert (sequence.part, sequence.parts) == (0, 1)


def test_raw_ids_are_gone_afterwards_also_when_refused() -> None:
    for request in (_request(), _request(identity={}), _request(response_ids=[-1])):
        _door().sequences(request)
        assert request.prompt_ids is request.response_ids is None


def test_what_was_not_logged_makes_no_sequence_and_what_is_empty_makes_an_empty_one() -> None:
    (response,) = _door().sequences(_request(prompt_ids=None))
    assert response.kind is Kind.RESPONSE
    assert response.prompt_token_count is None
    prompt, response = _door().sequences(_request(prompt_ids=[], response_ids=[]))
    assert len(prompt.token_hashes) == len(response.token_hashes) == 0
    assert prompt.prompt_token_count == 0
    assert _door().sequences(_request(prompt_ids=None, response_ids=None)) == []


def test_engine_and_pool_fall_back() -> None:
    (first, _) = _door().sequences(_request())
    assert (first.engine, first.kv_pool, first.model) == ("unknown", "unknown", "")
    (first, _) = _door(default_engine="vllm-0").sequences(_request())
    assert (first.engine, first.kv_pool) == ("vllm-0", "vllm-0")


@pytest.mark.parametrize(("ended", "expected"), [(None, 1000), (500, 1000), (1000, 1000)])
def test_an_unknown_or_impossible_end_is_the_start(ended: int | None, expected: int) -> None:
    response = _door().sequences(_request(ended_at_ms=ended))[1]
    assert response.ended_at_ms == expected


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("token_id_range", {"prompt_ids": [-987_654]}),
        ("token_id_range", {"response_ids": [987_654, MAX_TOKEN_ID + 1]}),
        ("token_id_range", {"response_ids": [2**64 + 987_654]}),
        ("token_id_range", {"response_ids": [987_654.5]}),
        ("token_id_range", {"response_ids": [True]}),
        ("token_id_range", {"response_ids": ["987654"]}),
        ("too_many_tokens", {"prompt_ids": [1] * (MAX_SIDE_TOKENS + 1)}),
        ("bad_text", {"request_id": ""}),
        ("bad_text", {"request_id": "r" * 513}),
        ("bad_text", {"request_id": "a\nb"}),
        ("bad_text", {"model": "\x1b[31m"}),
        ("bad_text", {"session": "\ud800"}),
        ("bad_text", {"identity": {"tenant": "a\x00b"}}),
        ("time_range", {"started_at_ms": 10**18}),
        ("time_range", {"ended_at_ms": -(10**18)}),
        ("number_range", {"status": -1}),
        ("number_range", {"status": 10**40}),
        ("number_range", {"reported_prompt_tokens": 2**60}),
    ],
)
def test_a_refused_request_is_counted_once_and_whole(
    reason: str, change: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    coverage = Coverage()
    assert _door(coverage).sequences(_request(**change)) == []
    assert coverage.broken_by_reason == {reason: 1}
    assert coverage.unmapped_tenants == 0
    assert not caplog.records


def test_an_unmapped_request_is_counted_and_dropped() -> None:
    coverage = Coverage()
    assert _door(coverage).sequences(_request(identity={})) == []
    assert coverage.unmapped_tenants == 1
    assert not coverage.broken_by_reason


@pytest.mark.parametrize(
    ("length", "parts"),
    [
        (0, 1),
        (5, 1),
        (MAX_SEQUENCE_TOKENS, 1),
        (MAX_SEQUENCE_TOKENS + 1, 2),
        (2 * MAX_SEQUENCE_TOKENS - PART_OVERLAP, 2),
        (2 * MAX_SEQUENCE_TOKENS - PART_OVERLAP + 1, 3),
        (MAX_SIDE_TOKENS, MAX_PARTS),
    ],
)
def test_parts_share_nine_tokens_and_lose_none(length: int, parts: int) -> None:
    hashes = np.arange(length, dtype=np.uint32)
    made = list(split(hashes, ()))
    assert [part.number for part in made] == list(range(parts))
    assert {part.total for part in made} == {parts}
    assert all(len(part.hashes) <= MAX_SEQUENCE_TOKENS for part in made)
    whole = made[0].hashes.tolist()
    for part in made[1:]:
        assert part.hashes[:PART_OVERLAP].tolist() == whole[-PART_OVERLAP:]
        assert len(part.hashes) > PART_OVERLAP
        whole += part.hashes[PART_OVERLAP:].tolist()
    assert whole == hashes.tolist()


def test_spans_are_cut_with_their_part() -> None:
    border = MAX_SEQUENCE_TOKENS
    hashes = np.zeros(border + 100, dtype=np.uint32)
    spans = (
        Span(Role.SYSTEM, 0, 10),
        Span(Role.USER, 10, border + 5),
        Span(Role.TEMPLATE, border + 5, border + 8),
    )
    first, second = split(hashes, spans)
    assert first.spans == (Span(Role.SYSTEM, 0, 10), Span(Role.USER, 10, border))
    offset = border - PART_OVERLAP
    assert second.spans == (
        Span(Role.USER, 0, border + 5 - offset),
        Span(Role.TEMPLATE, border + 5 - offset, border + 8 - offset),
    )


def test_two_million_tokens_are_taken() -> None:
    made = _door().sequences(_request(response_ids=[5] * 2_000_000))
    assert len(made) == 17
    assert made[-1].parts == 16
    assert made[-1].prompt_token_count == 5


def test_a_request_without_ids_is_a_row() -> None:
    row = _door().row(
        _request(
            prompt_ids=None,
            response_ids=None,
            kv_pool="p",
            engine="e",
            status=200,
            reported_prompt_tokens=9,
            gateway_cache_hit=True,
        )
    )
    assert row == RequestRow(
        tenant="acme",
        request_id="r",
        kv_pool="p",
        engine="e",
        model="",
        started_at_ms=1000,
        ended_at_ms=3000,
        prompt_tokens=9,
        status=200,
        flags=("ids_not_logged", "gateway_cache_hit"),
    )


def test_a_row_is_refused_and_counted_as_sequences_are() -> None:
    coverage = Coverage()
    door = _door(coverage)
    bare: dict[str, Any] = {"prompt_ids": None, "response_ids": None}
    assert door.row(_request(**bare, identity={})) is None
    assert door.row(_request(**bare, model="m" * 513)) is None
    assert (coverage.unmapped_tenants, coverage.broken_by_reason) == (1, {"bad_text": 1})
