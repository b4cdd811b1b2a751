"""Event order in a live stream: ends tell the time, and silence is believed."""

from collections.abc import Iterable

import pytest

from detector.index.window import LEAP_MS, Sequencer
from detector.model import Sequence
from detector.settings import WindowSettings
from tests.unit.sequences import prompt, response, text
from tests.unit.streams import Stream

LEAP_S = LEAP_MS // 1000
WINDOW = WindowSettings()


def names(released: Iterable[Sequence]) -> list[str]:
    return [one.request_id for one in released]


def test_an_answer_waits_only_for_what_ends_after_it() -> None:
    """Long answers only: by their starts time would stand still for a minute."""
    by_start, by_end = Sequencer(hold_ms=400), Sequencer(hold_ms=400, live=WINDOW)
    first = response("x", "1", 0, text(1, 20), end_s=60)
    second = response("x", "2", 1, text(2, 20), end_s=61)
    for sequencer in (by_start, by_end):
        assert not names(sequencer.push(first))
    assert names(by_start.push(second)) == []
    assert names(by_end.push(second)) == ["1"]
    assert by_end.watermark_ms == 60_600


def test_after_a_silence_time_goes_on_from_what_came_last() -> None:
    sequencer = Sequencer(hold_ms=400, live=WINDOW)
    assert names(sequencer.push(prompt("x", "1", 0, text(1, 20)))) == []
    after = prompt("x", "2", 3 * LEAP_S, text(2, 20))
    assert names(sequencer.push(after)) == []
    assert sequencer.clock_jumps == 1
    assert names(sequencer.catch_up()) == ["1", "2"]
    assert sequencer.newest_ms == after.started_at_ms
    sequencer.push(prompt("x", "3", 3 * LEAP_S + 1, text(3, 20)))
    assert sequencer.clock_jumps == 1


def test_a_silence_does_not_turn_time_back() -> None:
    sequencer = Sequencer(hold_ms=400, live=WINDOW)
    list(sequencer.push(prompt("x", "1", 0, text(1, 20))))
    list(sequencer.push(prompt("x", "2", -3 * LEAP_S, text(2, 20))))
    assert names(sequencer.catch_up()) == ["2", "1"]
    assert sequencer.newest_ms == 0


def in_order(sequencer: Sequencer, *arriving: Sequence) -> int:
    """Push sequences behind one that ended at 1000 s; return how many were late."""
    for one in (prompt("x", "now", 1000, text(1, 20)), prompt("x", "next", 1001, text(2, 20))):
        list(sequencer.push(one))
    for one in arriving:
        assert names(sequencer.push(one)) == [one.request_id]
    return sequencer.late


@pytest.mark.parametrize("took_s", [1, 60, 600])
def test_a_prompt_that_comes_with_its_answer_is_not_late(took_s: int) -> None:
    """A log has both at the end of a request, when the prompt's place has long passed."""
    asked = prompt("a", "1", 999 - took_s, text(3, 20))
    answer = response("a", "1", 999 - took_s, text(4, 20), end_s=999)
    assert in_order(Sequencer(hold_ms=400, live=WINDOW), asked, answer) == 0
    assert in_order(Sequencer(hold_ms=400), asked, answer) == 2


@pytest.mark.parametrize(("behind_s", "late"), [(59, 0), (61, 1), (1000, 1)])
def test_an_answer_is_late_after_the_grace(behind_s: int, late: int) -> None:
    end_s = 1000 - behind_s
    answer = response("a", "1", end_s - 5, text(3, 20), end_s=end_s)
    assert in_order(Sequencer(hold_ms=400, live=WINDOW), answer) == late


@pytest.mark.parametrize(("behind_s", "late"), [(659, 0), (661, 1)])
def test_a_prompt_is_late_when_no_answer_can_have_taken_so_long(behind_s: int, late: int) -> None:
    asked = prompt("a", "1", 1000 - behind_s, text(3, 20))
    assert in_order(Sequencer(hold_ms=400, live=WINDOW), asked) == late


def test_a_quiet_pool_is_judged_request_by_request() -> None:
    """One pair every three hours: each is a gap that nothing but the silence after it confirms."""
    stream = Stream()
    handler = stream.handler()
    runner = stream.runner(handler, idle_s=0.4)
    runner.start()
    for number in range(5):
        at_s, secret = number * 3 * LEAP_S, text(number, 30)
        ask = prompt("a", f"a{number}", at_s, secret)
        stream.send([ask, response("b", f"b{number}", at_s + 2, secret)])
        runner.catch_up()
        stream.now_ms += 500
        runner.turn()
        assert len(stream.findings()) == number + 1
        assert len(runner.committed) == 1
    assert handler.totals().late == 0
