"""Counters, order and episodes: resets, gaps, repeats, and when a state is told."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from detector.runtime.episodes import Failures, Sustained
from detector.runtime.increase import Increase
from detector.runtime.order import Ordered


def test_a_counter_tells_what_was_added_since_we_looked() -> None:
    counter = Increase()
    values = [7, 7, None, 9, 2, 2, 0, 1]
    assert [counter.add(value) for value in values] == [0, 0, 0, 2, 2, 0, 0, 1]


def test_a_state_is_told_once_when_it_has_lasted() -> None:
    state = Sustained(gap_ms=300)
    assert [state.on(at, lasting_ms=100) for at in range(0, 200, 50)] == [None, None, 0, None]


def test_one_observation_is_no_state_and_one_does_not_end_it() -> None:
    state = Sustained(gap_ms=300)
    assert state.on(0, lasting_ms=0) is None
    state.off()
    assert state.on(10, lasting_ms=0) is None
    assert state.on(20, lasting_ms=0) == 10
    state.off()
    assert state.on(30, lasting_ms=0) is None
    state.off()
    state.off()
    assert (state.on(40, lasting_ms=0), state.on(50, lasting_ms=0)) == (None, 40)


def test_what_is_unclear_ends_only_what_was_not_told() -> None:
    state = Sustained(gap_ms=300)
    state.on(0, lasting_ms=20)
    state.unclear()
    assert state.on(20, lasting_ms=20) is None
    assert state.on(40, lasting_ms=20) == 20
    state.unclear()
    assert (state.on(60, lasting_ms=20), state.told) == (None, True)


def test_what_was_not_observed_did_not_last() -> None:
    state = Sustained(gap_ms=300)
    state.on(0, lasting_ms=100)
    assert state.on(301, lasting_ms=100) is None
    assert state.on(401, lasting_ms=100) == 301


def test_failures_are_told_once_until_none_came_for_long() -> None:
    failures = Failures(100)
    told = [failures.add(at, "log") for at in (0, 50, 149, 248, 348, 400)]
    assert told == [0, None, None, None, 348, None]


def test_two_sources_of_the_same_failures_are_not_added() -> None:
    failures = Failures(100, least=3)
    assert [failures.add(at, source) for at in (0, 1) for source in ("log", "metrics")] == [
        None
    ] * 4
    assert failures.add(2, "metrics") == 0
    assert failures.count == 3


def test_old_failures_do_not_count() -> None:
    failures = Failures(100, least=3)
    assert [failures.add(at, "log") for at in (0, 60, 120, 180)] == [None] * 4
    assert failures.add(181, "log") == 120


def test_failures_of_one_party_may_be_too_few() -> None:
    failures = Failures(100, least=2, least_parties=2)
    assert [failures.add(at, "x", party="a") for at in (0, 1, 2)] == [None] * 3
    assert failures.add(3, "x", party="b") == 0


@settings(max_examples=50, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_order_undoes_any_disorder_within_the_hold(seed: int) -> None:
    rng = random.Random(seed)
    times = sorted(rng.sample(range(1_000), 40))
    arrival = sorted([*times, *rng.choices(times, k=10)], key=lambda at: at + rng.randrange(50))
    order: Ordered[int] = Ordered(50)
    released = [one for at in arrival for one in order.push(at, "x", at)]
    assert [*released, *order.drain()] == times
    assert len(released) >= len([at for at in times if at <= times[-1] - 50])


def test_a_late_report_goes_on_at_once() -> None:
    order: Ordered[str] = Ordered(10)
    assert not list(order.push(0, "x", "first"))
    assert list(order.push(100, "x", "second")) == ["first"]
    assert list(order.push(50, "x", "late")) == ["late"]
