"""The sequencer: event order whatever the arrival, late records, wrong clocks, bounded hold."""

import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.index import window
from detector.index.window import AGREEING_SUSPECTS, LEAP_MS, Sequencer
from detector.model import Kind, Sequence
from tests.unit.sequences import prompt, response, text

HOLD = 60_000
HOUR = 3600
TOKENS = text(1, 3)

FIXED = settings(deadline=None, derandomize=True, max_examples=200)


def order(sequence: Sequence) -> tuple[Any, ...]:
    return (
        sequence.ended_at_ms, sequence.kind is Kind.RESPONSE, sequence.tenant, sequence.request_id,
        sequence.part,
    )  # fmt: skip


def passed(sequencer: Sequencer, sequences: Iterable[Sequence]) -> list[Sequence]:
    return [ready for one in sequences for ready in sequencer.push(one)]


def names(sequences: Iterable[Sequence]) -> list[str]:
    return [one.request_id for one in sequences]


records = st.lists(
    st.tuples(
        st.integers(
            -300, 300
        ),  # start in seconds: ties are frequent, and the epoch is nothing special
        st.integers(0, 600),  # seconds until the response ends
        st.integers(0, HOLD - 1),  # delay of the prompt
        st.integers(0, HOLD - 1),  # delay of the response
        st.sampled_from("abc"),
    ),
    max_size=25,
)


@FIXED
@given(records)
def test_what_arrives_within_the_hold_leaves_in_event_order(
    drawn: list[tuple[int, int, int, int, str]],
) -> None:
    arrivals = []
    for number, (start, took, asked, answered, tenant) in enumerate(drawn):
        name = f"r{number}"
        arrivals += [
            (start * 1000 + asked, prompt(tenant, name, start, TOKENS)),
            (
                (start + took) * 1000 + answered,
                response(tenant, name, start, TOKENS, end_s=start + took),
            ),
        ]
    arrivals.sort(key=lambda one: one[0])
    sequencer = Sequencer(hold_ms=HOLD)
    released = passed(sequencer, [one for _, one in arrivals]) + list(sequencer.drain())
    assert released == sorted((one for _, one in arrivals), key=order)
    assert (sequencer.late, sequencer.clock_jumps, sequencer.forced) == (0, 0, 0)


def test_ties_never_depend_on_the_order_of_arrival() -> None:
    ties = [make(t, r, 0, TOKENS) for t in "ab" for r in "12" for make in (prompt,)]
    ties += [response(t, r, -1, TOKENS, part=p) for t in "ab" for r in "12" for p in (0, 1)]
    orders = set()
    for seed in range(20):
        random.Random(seed).shuffle(ties)
        sequencer = Sequencer(hold_ms=HOLD)
        orders.add(tuple(map(order, passed(sequencer, ties) + list(sequencer.drain()))))
    assert len(orders) == 1


def test_a_response_waits_for_its_end_and_the_watermark_follows_starts() -> None:
    sequencer = Sequencer(hold_ms=HOLD)
    assert sequencer.watermark_ms is None
    assert not passed(sequencer, [prompt("a", "1", 0, TOKENS)])
    assert not passed(sequencer, [response("a", "1", 0, TOKENS, end_s=30)])
    assert names(passed(sequencer, [prompt("b", "2", 60, TOKENS)])) == ["1"]
    assert sequencer.watermark_ms == 0
    assert sequencer.newest_ms == 60_000
    assert names(passed(sequencer, [prompt("b", "3", 90, TOKENS)])) == ["1"]


@pytest.mark.parametrize("epoch", [-500, -60, 0, 1_800_000_000])
def test_late_records_are_counted_and_leave_at_once(epoch: int) -> None:
    sequencer = Sequencer(hold_ms=HOLD)
    for at in (0, 60, 120):
        passed(sequencer, [prompt("a", f"{at}", epoch + at, TOKENS)])
    assert sequencer.late == 0
    assert names(passed(sequencer, [prompt("b", "late", epoch + 59, TOKENS)])) == ["late"]
    assert names(passed(sequencer, [prompt("b", "later", epoch - 5, TOKENS)])) == ["later"]
    assert names(passed(sequencer, [prompt("b", "still", epoch + 59, TOKENS)])) == ["still"]
    assert sequencer.late == 3
    assert not passed(sequencer, [prompt("b", "held", epoch + 61, TOKENS)])
    assert sequencer.late == 3


@pytest.mark.parametrize("hours", [-48, -2, 2, 48, 24 * 365 * 100])
def test_one_wrong_clock_does_not_rule(hours: int) -> None:
    sequencer = Sequencer(hold_ms=HOLD)
    passed(sequencer, [prompt("a", "0", 0, TOKENS)])
    passed(sequencer, [prompt("x", "wrong", hours * HOUR, TOKENS)])
    assert sequencer.newest_ms == 0
    released = passed(sequencer, [prompt("a", str(at), at, TOKENS) for at in range(1, 200)])
    assert [name for name in names(released) if name != "wrong"] == [str(at) for at in range(140)]
    assert (sequencer.newest_ms, sequencer.clock_jumps) == (199_000, 1)
    assert "wrong" in names(released) + names(sequencer.drain())


def test_wrong_clocks_that_disagree_never_rule() -> None:
    sequencer = Sequencer(hold_ms=HOLD)
    passed(sequencer, [prompt("a", "0", 0, TOKENS)])
    wrong = [prompt("x", f"w{n}", n * 2 * HOUR + 5 * HOUR, TOKENS) for n in range(50)]
    passed(sequencer, wrong)
    assert sequencer.newest_ms == 0
    assert sequencer.clock_jumps == 50
    assert sorted(names(sequencer.drain())) == sorted(["0", *names(wrong)])


@pytest.mark.parametrize("jump_s", [3 * HOUR, -3 * HOUR])
def test_a_clock_that_really_moved_is_followed(jump_s: int) -> None:
    sequencer = Sequencer(hold_ms=HOLD)
    passed(sequencer, [prompt("a", f"old{at}", at, TOKENS) for at in range(5)])
    after = [prompt("a", f"new{at}", jump_s + at, TOKENS) for at in range(100)]
    released = names(passed(sequencer, after[:AGREEING_SUSPECTS]))
    assert sequencer.newest_ms == (jump_s + AGREEING_SUSPECTS - 1) * 1000
    released += names(passed(sequencer, after[AGREEING_SUSPECTS:]))
    assert sequencer.clock_jumps == AGREEING_SUSPECTS
    assert sequencer.late == 0
    new = [name for name in released if name.startswith("new")]
    assert new == [f"new{at}" for at in range(40)]
    everything = released + names(sequencer.drain())
    assert len(everything) == len(set(everything)) == 105


@FIXED
@given(st.lists(st.integers(-10, 10), max_size=30), st.integers(0, 2 * LEAP_MS))
def test_nothing_is_lost_or_invented_whatever_the_clocks(hours: list[int], hold_ms: int) -> None:
    sent = [prompt("a", str(n), hour * HOUR / 2, TOKENS) for n, hour in enumerate(hours)]
    sequencer = Sequencer(hold_ms=hold_ms)
    released = passed(sequencer, sent) + list(sequencer.drain())
    assert sorted(map(id, released)) == sorted(map(id, sent))
    assert not list(sequencer.drain())


def test_more_than_the_bound_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "MAX_HELD_TOKENS", 1000)
    sequencer = Sequencer(hold_ms=HOLD)
    tokens = np.zeros(300, np.uint32)
    released = passed(sequencer, [prompt("a", str(n), n / 10, tokens) for n in range(10)])
    assert names(released) == [str(n) for n in range(7)]
    assert sequencer.forced == 7
    assert names(sequencer.drain()) == ["7", "8", "9"]
    assert sequencer.forced == 7


def test_draining_an_empty_sequencer_yields_nothing() -> None:
    sequencer = Sequencer(hold_ms=HOLD)
    assert not list(sequencer.drain())
    assert sequencer.newest_ms is None
