"""Rows of requests: joined from both sides, told once, never waited for without bound."""

from typing import Any

import pytest

from detector.model import Kind
from ingest.request_rows import RequestRows, rejection_row
from ingest.schema import decode, encode
from ingest.schema_records import EngineEvent, EventKind, RequestRow, SequenceRecord
from tests.unit.wire import hashes, record

KEEP_MS = 60_000


def prompt(tokens: int = 5, **more: Any) -> SequenceRecord:
    return record(hashes(1, tokens), prompt_token_count=tokens, **more)


def response(tokens: int = 3, **more: Any) -> SequenceRecord:
    given = {"kind": Kind.RESPONSE, "spans": (), "ended_at_ms": 4_000} | more
    return record(hashes(2, tokens), **given)


def rows(*records: SequenceRecord, **more: Any) -> list[RequestRow]:
    made = RequestRows(keep_ms=KEEP_MS, **more)
    return [row for one in records for row in made.add(one)] + made.drain()


def test_both_sides_make_one_row_when_the_response_is_there() -> None:
    made = RequestRows(keep_ms=KEEP_MS)
    assert made.add(prompt()) == []
    (row,) = made.add(response(finish_reason="stop", status=200))
    assert decode(RequestRow, encode(row)) == row
    assert row == RequestRow(
        tenant="acme", request_id="r-1", kv_pool="p", engine="e", model="m", started_at_ms=1_000,
        ended_at_ms=4_000, prompt_tokens=5, completion_tokens=3, finish_reason="stop", status=200,
    )  # fmt: skip
    assert len(made) == 0


def test_parts_are_counted_without_their_overlap_and_once() -> None:
    parts = [record(hashes(3, 100), part=part, parts=3, spans=()) for part in range(3)]
    (row,) = rows(*parts, *parts, response())
    assert (row.prompt_tokens, row.flags) == (282, ())
    halves = [response(20, part=part, parts=2) for part in range(2)]
    made = RequestRows(keep_ms=KEEP_MS)
    assert made.add(halves[1]) == []
    assert [row.completion_tokens for row in made.add(halves[0])] == [31]


def test_a_length_that_is_only_stated_is_taken_over() -> None:
    (row,) = rows(response(prompt_token_count=9, reported_prompt_tokens=12))
    assert (row.prompt_tokens, row.flags) == (9, ("prompt_unseen",))
    (row,) = rows(response(reported_prompt_tokens=12))
    assert row.prompt_tokens == 12


@pytest.mark.parametrize(
    ("flags", "records"),
    [
        (("prompt_unseen",), [response()]),
        (("response_unseen",), [prompt()]),
        (("response_unseen", "parts_missing"), [record(hashes(1, 20), parts=2)]),
        (("parts_missing",), [prompt(), response(parts=2)]),
        (("gateway_cache_hit",), [prompt(gateway_cache_hit=True), response()]),
        ((), [record(), response(0)]),
    ],
)
def test_what_is_missing_is_flagged(flags: tuple[str, ...], records: list[SequenceRecord]) -> None:
    (row,) = rows(*records)
    assert row.flags == flags


def test_requests_of_one_id_are_told_apart_by_tenant_and_start() -> None:
    made = RequestRows(keep_ms=KEEP_MS)
    made.add(prompt(5))
    made.add(prompt(6, tenant="globex"))
    made.add(prompt(7, started_at_ms=1_001, ended_at_ms=1_001))
    (row,) = made.add(response(tenant="globex"))
    assert (row.tenant, row.prompt_tokens, len(made)) == ("globex", 6, 2)


def test_event_time_ends_the_waiting() -> None:
    made = RequestRows(keep_ms=KEEP_MS)
    for at in (1_000, 2_000, 3_000):
        made.add(prompt(request_id=str(at), started_at_ms=at, ended_at_ms=at))
    assert made.expire(1_000 + KEEP_MS - 1) == []
    assert [row.request_id for row in made.expire(2_000 + KEEP_MS)] == ["1000", "2000"]
    assert len(made) == 1


def test_the_one_that_waited_longest_goes_when_there_are_too_many() -> None:
    made = RequestRows(keep_ms=KEEP_MS, max_waiting=2)
    told = [row for number in range(5) for row in made.add(prompt(request_id=str(number)))]
    assert [row.request_id for row in told] == ["0", "1", "2"]
    assert len(made) == 2


def rejected(**more: Any) -> EngineEvent:
    given: dict[str, Any] = {
        "kind": EventKind.REJECTED, "engine": "e", "kv_pool": "p", "at_ms": 9_000, "tenant": "acme",
        "request_id": "r-1", "prompt_tokens": 70_000,
    }  # fmt: skip
    return EngineEvent(**(given | more))


def test_a_rejection_is_a_row_with_its_limit() -> None:
    row = rejection_row(rejected(detail="max_input_tokens", created_at_ms=8_000))
    assert row is not None
    assert (row.rejected_by, row.started_at_ms, row.ended_at_ms, row.prompt_tokens) == (
        "max_input_tokens", 8_000, 9_000, 70_000,
    )  # fmt: skip
    assert decode(RequestRow, encode(row)) == row
    bare = rejection_row(rejected())
    assert bare is not None
    assert (bare.rejected_by, bare.started_at_ms) == ("engine", 9_000)


@pytest.mark.parametrize(
    "event", [rejected(tenant=None), rejected(request_id=None), rejected(kind=EventKind.ABORTED)]
)
def test_an_event_without_a_request_is_no_row(event: EngineEvent) -> None:
    assert rejection_row(event) is None
