"""Blocks that a crashed process left open are known from its audit records, and no others are."""

from typing import Any

import pytest

from ingest.kv_lease.events import Event, Owner
from ingest.kv_lease.recovery import left_open

MADE_MS = 1_795_000_000_000


def event(kind: str, request: str = "r1", **more: Any) -> Event:
    given: dict[str, Any] = {
        "engine": "e", "kv_pool": "p", "at_ms": MADE_MS, "tenant": "acme", "request_id": request,
        "created_at_ms": MADE_MS, "block": "b",
    }  # fmt: skip
    return Event(kind=kind, **(given | more))


def owner(request: str) -> Owner:
    return Owner("acme", request, MADE_MS)


def test_a_block_that_was_only_allocated_is_left_open() -> None:
    assert left_open([event("allocated")], "e") == {"b": owner("r1")}


def test_a_block_that_was_invalidated_is_not() -> None:
    events = [event("allocated"), event("reused", "r2"), event("released", "r2", detail="finished")]
    assert left_open(events, "e") == {}


def test_who_still_holds_a_shared_block_answers_for_it() -> None:
    events = [event("allocated"), event("reused", "r2"), event("released", "r2", detail="shared")]
    assert left_open(events, "e") == {"b": owner("r1")}


@pytest.mark.parametrize("detail", ["kept", "shared"])
def test_whoever_held_it_last_answers_for_a_block_that_nobody_holds(detail: str) -> None:
    events = [event("allocated"), event("released", detail=detail)]
    assert left_open(events, "e") == {"b": owner("r1")}


def test_a_release_by_whoever_never_held_it_takes_it_from_nobody() -> None:
    events = [event("allocated"), event("released", "stranger", detail="shared")]
    assert left_open(events, "e") == {"b": owner("r1")}


@pytest.mark.parametrize(
    "change",
    [
        {"engine": "another"},
        {"block": None},
        {"tenant": None},
        {"request_id": None},
        {"created_at_ms": None},
        {"created_at_ms": 0},
        {"tenant": "line\nbreak"},
        {"request_id": ""},
    ],
)
def test_what_names_no_block_or_owner_of_the_engine_is_passed_over(change: dict[str, Any]) -> None:
    assert left_open([event("allocated", **change)], "e") == {}
    events = [event("allocated"), event("released", detail="finished", **change)]
    assert left_open(events, "e") == {"b": owner("r1")}
