"""What a silence holds, and what it must not hold: the way of an end to who was told."""

import pytest

from exporters.outputs.notification import Kind
from exporters.sending.decide import QUIET, Decision, Drop, Hold, Known, decide
from exporters.store.outbox import Due, State
from tests.alerts.kit import NOW_MS, notification


@pytest.mark.parametrize(
    ("is_over", "was_told", "decision"),
    [
        (False, True, Hold(NOW_MS + 1)),
        (True, False, Hold(NOW_MS + 1)),
        (True, True, Drop(QUIET)),
    ],
)
def test_an_update_before_the_end_of_what_was_told_is_dropped(
    *, is_over: bool, was_told: bool, decision: Decision
) -> None:
    due = Due(notification(Kind.UPDATED), "desk", State.WAITING, attempts=0, due_at_ms=NOW_MS)
    known = Known(
        silenced_until_ms=NOW_MS + 1,
        was_told=was_told,
        is_over=is_over,
        is_left_open=False,
        failing_ms=0,
    )
    assert decide(due, known, now_ms=NOW_MS, give_up_ms=NOW_MS) == decision
