"""Event order in a live stream: ends tell the time, and silence is believed."""

from collections.abc import Iterable

from detector.index.window import LEAP_MS, Sequencer
from detector.model import Sequence
from tests.unit.sequences import prompt, response, text
from tests.unit.streams import Stream

LEAP_S = LEAP_MS // 1000


def names(released: Iterable[Sequence]) -> list[str]:
    return [one.request_id for one in released]


def test_an_answer_waits_only_for_what_ends_after_it() -> None:
    """Long answers only: by their starts time would stand still for a minute."""
    by_start, by_end = Sequencer(hold_ms=400), Sequencer(hold_ms=400, by_end=True)
    first = response("x", "1", 0, text(1, 20), end_s=60)
    second = response("x", "2", 1, text(2, 20), end_s=61)
    for sequencer in (by_start, by_end):
        assert not names(sequencer.push(first))
    assert names(by_start.push(second)) == []
    assert names(by_end.push(second)) == ["1"]
    assert by_end.watermark_ms == 60_600


def test_after_a_silence_time_goes_on_from_what_came_last() -> None:
    sequencer = Sequencer(hold_ms=400, by_end=True)
    assert names(sequencer.push(prompt("x", "1", 0, text(1, 20)))) == []
    after = prompt("x", "2", 3 * LEAP_S, text(2, 20))
    assert names(sequencer.push(after)) == []
    assert sequencer.clock_jumps == 1
    assert names(sequencer.catch_up()) == ["1", "2"]
    assert sequencer.newest_ms == after.started_at_ms
    sequencer.push(prompt("x", "3", 3 * LEAP_S + 1, text(3, 20)))
    assert sequencer.clock_jumps == 1


def test_a_silence_does_not_turn_time_back() -> None:
    sequencer = Sequencer(hold_ms=400, by_end=True)
    list(sequencer.push(prompt("x", "1", 0, text(1, 20))))
    list(sequencer.push(prompt("x", "2", -3 * LEAP_S, text(2, 20))))
    assert names(sequencer.catch_up()) == ["2", "1"]
    assert sequencer.newest_ms == 0


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
