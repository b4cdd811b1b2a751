"""An alert is given up only for a receiver that was away all the while, and clocks may jump."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exporters.incidents.model import ChangeKind
from exporters.outputs.contract import Outcome, Rejected, Retry
from exporters.outputs.notification import Kind, Notification
from exporters.sending.breaker import TOLERATED
from exporters.sending.decide import TOO_OLD, Drop, Known, Send, decide
from exporters.sending.schedule import LONGEST_MS
from exporters.store import journal
from exporters.store.database import Database
from exporters.store.outbox import Due, State
from tests.alerts import kit
from tests.alerts.desk import HOUR_MS, Desk
from tests.alerts.kit import NOW_MS, change, notification
from tests.alerts.simulation import GIVE_UP_MS

DAY_MS = 24 * HOUR_MS
OPENED = change(ChangeKind.OPENED)

SEEN = Known(
    silenced_until_ms=None, was_told=False, is_over=False, is_left_open=False, failing_ms=0
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with kit.store(tmp_path) as opened:
        yield opened


@pytest.fixture
def desk(database: Database) -> Desk:
    return Desk(database)


def test_a_silence_is_no_time_that_the_receiver_was_away(desk: Desk) -> None:
    desk.output.answers.append(Retry("500"))
    desk.tell(OPENED)
    desk.lane.step()
    desk.silence(4 * 24 * 60)
    desk.run(NOW_MS + 5 * DAY_MS)
    assert desk.output.kinds() == [Kind.OPENED] * 2


@pytest.mark.parametrize("answer", [Retry("500"), Rejected("410", gone=True)])
def test_what_waits_for_an_api_that_was_down_is_sent(database: Database, answer: Outcome) -> None:
    before = Desk(database)
    before.output.answers.append(answer)
    before.tell(OPENED)
    before.lane.step()
    after = Desk(database)
    after.clock.at_ms = NOW_MS + 4 * DAY_MS
    after.output.answers += [Retry("not up yet")] * 3
    after.run(after.clock() + HOUR_MS)
    assert after.output.kinds() == [Kind.OPENED] * 4
    assert TOO_OLD not in [line.answer for line in after.lines()]


@pytest.mark.parametrize(
    ("attempts", "failing_ms", "decision"),
    [
        (0, GIVE_UP_MS + 1, Send()),
        (1, 0, Send()),
        (1, GIVE_UP_MS, Send()),
        (1, GIVE_UP_MS + 1, Drop(TOO_OLD)),
        (GIVE_UP_MS // LONGEST_MS, 0, Send()),
        (GIVE_UP_MS // LONGEST_MS + 1, 0, Drop(TOO_OLD)),
    ],
)
def test_what_is_given_up_was_tried_all_the_while(
    attempts: int, failing_ms: int, decision: Send | Drop
) -> None:
    due = Due(notification(), "hook", State.WAITING, attempts, NOW_MS)
    known = SEEN._replace(failing_ms=failing_ms)
    for age_ms, expected in ((GIVE_UP_MS, Send()), (GIVE_UP_MS + 1, decision)):
        now_ms = due.notification.created_at_ms + age_ms
        assert decide(due, known, now_ms=now_ms, give_up_ms=GIVE_UP_MS) == expected


def test_a_clock_set_back_while_the_breaker_is_open_keeps_nothing_back(desk: Desk) -> None:
    desk.clock.at_ms = NOW_MS + DAY_MS
    desk.output.answers += [Retry("500")] * 2 * TOLERATED
    desk.tell(*(change(name=f"inc-{n}", at_ms=desk.clock()) for n in range(TOLERATED)))
    desk.run()
    desk.clock.at_ms = NOW_MS
    desk.tell(change(name="inc-new"))
    desk.run(NOW_MS + HOUR_MS)
    tried = [one.incident_id for one in desk.output.got].count("inc-new")
    assert tried == 1 + TOLERATED, "the breaker closed, or a pause of tomorrow held"


@pytest.mark.parametrize("jump_ms", [40 * DAY_MS, -40 * DAY_MS])
def test_a_clock_that_jumps_during_a_sending_makes_it_no_longer(
    database: Database, jump_ms: int
) -> None:
    desk = Desk(database)
    desk.tell(OPENED)
    send = desk.output.send

    def jump(told: Notification, *, at_ms: int) -> Outcome:
        desk.clock.at_ms += jump_ms
        return send(told, at_ms=at_ms)

    desk.output.send = jump  # type: ignore[assignment,method-assign]
    desk.lane.step()
    (line,) = desk.lines()
    assert 0 <= line.duration_ms < HOUR_MS


@pytest.mark.parametrize("took_ms", [-1, 2**40])
def test_a_duration_fits_its_column(took_ms: int) -> None:
    line = journal.line(
        notification(), "hook", journal.Ended.FAILED, "500", at_ms=NOW_MS, duration_ms=took_ms
    )
    assert line.duration_ms == max(0, min(took_ms, journal.LONGEST_MS)) < 2**31
