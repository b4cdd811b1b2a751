"""Rules BW105 and BW208 in a partition's watch: what block events tell, and what they do not."""

import random
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.finding import Finding, Severity
from detector.ledger.ledger import Ledger
from detector.ledger.violation import Breach
from detector.runtime.settings import RuntimeSettings
from detector.settings import WindowSettings
from detector.streaming.runtime_watch import RuntimeWatch
from ingest.schema_records import EngineEvent, EventKind
from tests.unit.kv_publisher import batch, stored
from tests.unit.lifecycles import unknown
from tests.unit.runtime_records import answered, event, sample
from tests.unit.test_kv_feed import events, feed, reuse_of_run_h

LATER_S = 1_000.0
RELEASE_S = RuntimeSettings().release_ms / 1_000


def step(kind: str, at_s: float, request: str | None = "r1", **more: Any) -> EngineEvent:
    """Return an event of tenant `acme` about block `b`, unless told otherwise."""
    known: dict[str, Any] = {"tenant": "acme", "block": "b", "created_at_ms": 5}
    return event(EventKind(kind), at_s, request_id=request, **(known | more))


def watch() -> RuntimeWatch:
    return RuntimeWatch(RuntimeSettings(), WindowSettings())


def told(one: RuntimeWatch, given: Iterable[EngineEvent]) -> list[Finding]:
    found = [finding for event in given for finding in one.event(event, is_news=True)]
    return [*found, *one.idle()]


def found(*given: EngineEvent) -> list[Finding]:
    return told(watch(), given)


def kept_by_acme(until_s: float = 100) -> list[EngineEvent]:
    until_ms = int(until_s * 1_000)
    return [step("allocated", 1), step("released", 2, detail="kept", expires_at_ms=until_ms)]


def test_memory_of_another_tenant_that_is_reused_or_transferred_is_high() -> None:
    foreign = {"tenant": "globex"}
    for kind, said in (("reused", "reused KV memory"), ("transferred", "got KV memory")):
        (one,) = found(*kept_by_acme(), step(kind, 3, "r2", **foreign))
        assert (one.rule, one.severity) == ("BW208", Severity.HIGH)
        assert (one.sink.tenant, one.sink.request_id) == ("globex", "r2")
        assert (one.source.tenant, one.source.request_id) == ("acme", "r1")
        assert said in one.explanation
        assert one.runtime == {"block": "b"}


@pytest.mark.parametrize(
    ("before", "reuse", "severity", "said"),
    [
        (kept_by_acme(), step("reused", 100, "r2"), Severity.MEDIUM, "after its time to live"),
        ([step("allocated", 1)], step("reused", 2, "r2"), Severity.MEDIUM, "not approved"),
        (
            [step("allocated", 1), step("released", 2, detail="finished")],
            step("reused", 3, "r2"),
            Severity.HIGH,
            "was invalid",
        ),
        (
            [*kept_by_acme(), step("clear_failed", 3)],
            step("reused", 4, "r2"),
            Severity.MEDIUM,
            "not approved",
        ),
        ([], step("reused", 3, "r2", expires_at_ms=2_000), Severity.MEDIUM, "time to live"),
        ([], step("reused", 3, "r2", other_tenant="globex"), Severity.HIGH, "of tenant globex"),
    ],
)
def test_reuse_that_was_not_approved_is_told(
    before: list[EngineEvent], reuse: EngineEvent, severity: Severity, said: str
) -> None:
    (one,) = [told for told in found(*before, reuse) if told.rule == "BW208"]
    assert one.severity is severity
    assert said in one.explanation


def test_approved_reuse_and_what_nobody_knows_accuse_nobody() -> None:
    assert not found(*kept_by_acme(), step("reused", 50, "r2"), step("released", 51, "r2"))
    assert not found(step("reused", 50, "r2"), step("released", 51, "r3"))
    assert not found(step("transferred", 50, "r2"))
    assert not found(event(EventKind.REUSED, 1, block="b"), event(EventKind.RELEASED, 2, block="b"))


@pytest.mark.parametrize("absent", ["tenant", "request_id", "created_at_ms"])
def test_transfers_that_name_nobody_are_one_episode_of_their_engine(absent: str) -> None:
    label = {"tenant": "acme", "request_id": "r1", "created_at_ms": 5, absent: None}
    many = [event(EventKind.TRANSFERRED, at, block=f"b{at}", **label) for at in range(20)]
    (one,) = found(*many)
    assert (one.rule, one.severity) == ("BW208", Severity.MEDIUM)
    assert absent.split("_", maxsplit=1)[0] in one.explanation.replace("creation", "created")


@pytest.mark.parametrize("end", ["aborted", "timed_out", "rejected", "clear_failed", "response"])
def test_a_request_that_ended_and_released_nothing_is_told_in_time(end: str) -> None:
    one = watch()
    told(one, [step("allocated", 1), step("allocated", 1, block="c")])
    if end == "response":
        ended = answered("r1", 8, 40, tenant="acme")
        assert not one.parts([ended], is_news=True)
    else:
        told(one, [step(end, 10, tenant=None, block=None)])
    assert not told(one, [step("allocated", 9 + RELEASE_S, "other", block="d")])
    found = told(one, [step("released", 10.1 + RELEASE_S, "other", block="d")])
    (late,) = [finding for finding in found if finding.rule == "BW208"]
    assert late.sink.request_id == "r1"
    assert late.severity is Severity.MEDIUM
    assert (late.runtime or {})["blocks"] == "2"
    assert not told(one, [step("allocated", LATER_S, "next", block="e")])


def test_an_end_that_is_known_before_the_allocation_counts() -> None:
    one = watch()
    one.parts([answered("r1", 8, 40, tenant="acme")], is_news=True)
    told(one, [step("allocated", 7)])
    assert [late.rule for late in told(one, [step("allocated", LATER_S, "r2", block="d")])]


def test_responses_that_are_far_ahead_of_the_events_accuse_nobody() -> None:
    one = watch()
    told(one, [step("allocated", 1)])
    far = answered("x", LATER_S, 40)
    assert not one.parts([answered("r1", 2, 40, tenant="acme"), far], is_news=True)
    assert not one.event(step("released", 5), is_news=True)
    assert not told(one, [step("allocated", LATER_S, "r2", block="d")])


def test_a_request_that_goes_on_behind_an_end_was_not_over() -> None:
    steps = [step("allocated", 1), step("aborted", 2), step("transferred", 3)]
    assert not found(*steps, step("allocated", LATER_S, "r2", block="d"))
    duplicate = step("rejected", 2, detail="duplicate_id")
    assert not found(steps[0], duplicate, step("allocated", LATER_S, "r2", block="d"))


def test_the_engines_silence_does_not_hide_what_is_overdue() -> None:
    one = watch()
    told(one, [step("allocated", 1), step("aborted", 2)])
    one.sample(sample(LATER_S, engine="e"), is_news=True)
    assert [late.rule for late in one.idle()] == ["BW208"]


def life(number: int) -> list[EngineEvent]:
    """Return a life of a block in which nothing is wrong but what the number says."""
    at, request, block = number * 7.0, f"q{number}", f"block {number % 5}"
    common: dict[str, Any] = {"block": block, "created_at_ms": number}
    return [
        step("allocated", at, request, **common),
        step("transferred", at + 0.1, request, **common),
        step("released", at + 0.2, request, detail="kept",
             expires_at_ms=int(at * 1_000) + 3_000, **common),
        step("reused", at + (4 if number % 10 == 1 else 1), f"u{number}",
             tenant="globex" if number % 10 == 2 else "acme", **common),
        step("released", at + 5, f"u{number}", detail="expired", **common),
    ]  # fmt: skip


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1_000), cut=st.integers(0, 250), repeated=st.integers(0, 60))
def test_disorder_repeats_and_a_restart_change_nothing(seed: int, cut: int, repeated: int) -> None:
    rng = random.Random(seed)
    steps = [one for number in range(50) for one in life(number)]
    wanted = {one.id for one in found(*steps)}
    assert len(wanted) == 10
    replayed = [*steps[:cut], *steps[max(cut - repeated, 0) :]]
    assert {one.id for one in found(*replayed)} == wanted
    mixed = sorted(steps, key=lambda one: one.at_ms + rng.random() * 4_900)
    assert {one.id for one in found(*mixed)} == wanted
    first, second = watch(), watch()
    ids = {one.id for one in told(first, steps[:cut])}
    for at, one in enumerate(steps[max(cut - repeated, 0) :], start=max(cut - repeated, 0)):
        ids |= {late.id for late in second.event(one, is_news=at >= cut)}
    assert ids | {one.id for one in second.idle()} <= wanted


def test_memory_is_bounded_and_what_is_forgotten_accuses_nobody() -> None:
    ledger = Ledger(release_ms=1_000, max_blocks=100, end_of=unknown)
    violated = []
    for at in range(2_000):
        block = f"b{at}" if at % 2 else "one block that is given out again and again"
        given = step("allocated", at, f"r{at}", block=block, kv_pool=f"p{at % 3}")
        violated += list(ledger.event(given))
        assert len(ledger) <= 100
    assert not violated
    reuse = step("reused", 3_000, "x", tenant="globex", block="b1", kv_pool="p1")
    assert not list(ledger.event(reuse))
    known = step("reused", 3_000, "x", tenant="globex", block="b1999", kv_pool="p1")
    assert [one.breach for one in ledger.event(known)] == [Breach.REUSE_OTHER_TENANT]


def test_published_reuse_between_tenants_is_told_once_and_less_grave_without_salts() -> None:
    crossings = events(feed(reuse_of_run_h())(0.0))
    (one,) = found(*crossings, *crossings)
    assert (one.rule, one.severity) == ("BW105", Severity.MEDIUM)
    assert (one.sink.tenant, one.source.tenant) == ("umbrella", "initech")
    assert "tenant umbrella reused a KV block of tenant initech" in one.explanation


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        (
            batch(
                stored([1, 2], [1, 2], size=1, cache_salt="salt-acme"),
                stored([1, 2], [1, 2], size=1, cache_salt="salt-globex"),
            ),
            "reused the same KV block under another salt",
        ),
        (
            batch(
                stored([1, 2], list(range(8)), extra_keys=[["salt-acme"], None]),
                stored([1, 2], list(range(8)), extra_keys=[["salt-globex"], None]),
            ),
            "reused the same KV block under another salt",
        ),
        (
            batch(
                stored([1], [1], size=1, cache_salt="salt-acme"),
                stored([2], [2], size=1, parent=1, cache_salt="salt-globex"),
            ),
            "stored KV blocks behind a block of another salt",
        ),
    ],
    ids=["sglang", "vllm", "behind"],
)
def test_published_blocks_across_salts_are_high(payload: bytes, said: str) -> None:
    (one,) = found(*events(feed([payload])(0.0)))
    assert (one.rule, one.severity) == ("BW105", Severity.HIGH)
    assert (one.sink.tenant, one.source.tenant) == ("globex", "acme")
    assert said in one.explanation


def test_every_block_of_salted_tenants_is_told_and_nothing_is_found() -> None:
    payload = batch(
        stored([1, 2], list(range(8)), extra_keys=[["salt-acme"], None]),
        stored([1, 2], list(range(8)), extra_keys=[["salt-acme"], None]),
        stored([3, 4], list(range(8)), extra_keys=[["salt-globex"], None]),
        {"type": "BlockRemoved", "block_hashes": [1, 3], "medium": "GPU"},
    )
    told = events(feed([payload], every_block=True)(0.0))
    assert len(told) == 8
    assert not found(*told)
