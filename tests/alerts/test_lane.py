"""One output's lane on a real store: silences, pace, order, rejections, a store that fails."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from detector.errors import StoreError
from exporters.incidents.model import ChangeKind
from exporters.outputs.alertmanager import HOLDS_FOR
from exporters.outputs.contract import Outcome, Rejected, Retry
from exporters.outputs.notification import Kind, Notification
from exporters.sending.decide import NOT_TOLD, QUIET, TOO_OLD
from exporters.sending.lane import RESOLVED_AGAIN_MS
from exporters.store import journal, outbox, silences
from exporters.store.database import Database
from exporters.store.journal import Ended
from exporters.store.tables import incidents
from tests.alerts import kit
from tests.alerts.desk import HOUR_MS, MINUTE_MS, Desk, Listed
from tests.alerts.kit import NOW_MS, change
from tests.alerts.simulation import GIVE_UP_MS


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with kit.store(tmp_path) as opened:
        yield opened


@pytest.fixture
def desk(database: Database) -> Desk:
    return Desk(database)


OPENED = change(ChangeKind.OPENED)
GRAVER = change(ChangeKind.SEVERITY_RAISED, version=2)
RESOLVED = change(ChangeKind.RESOLVED, version=3)


def test_what_failed_is_tried_again_before_what_follows_it(desk: Desk) -> None:
    desk.output.answers += [Retry("500"), Retry("500")]
    desk.tell(OPENED, GRAVER, RESOLVED)
    desk.run(NOW_MS + 10_000)
    assert [one.sequence for one in desk.output.got] == [1, 1, 1, 2, 3]
    assert desk.outcomes() == [Ended.FAILED] * 2 + [Ended.DELIVERED] * 3


def test_one_incident_does_not_wait_for_another(desk: Desk) -> None:
    desk.output.answers.append(Retry("500"))
    desk.tell(OPENED, change(name="inc-2"))
    desk.run()
    failed, other, again = [one.incident_id for one in desk.output.got]
    assert failed == again != other
    assert desk.outcomes() == [Ended.FAILED, Ended.DELIVERED, Ended.DELIVERED]


def test_what_is_rejected_does_not_stop_what_follows(desk: Desk) -> None:
    desk.output.answers.append(Rejected("400"))
    desk.tell(OPENED, GRAVER)
    desk.run()
    assert desk.outcomes() == [Ended.REJECTED, Ended.DELIVERED]


def test_the_end_of_what_was_never_told_is_not_told(desk: Desk) -> None:
    desk.output.answers.append(Rejected("400"))
    desk.tell(OPENED, RESOLVED)
    desk.run()
    assert desk.output.kinds() == [Kind.OPENED]
    assert desk.lines()[-1].answer == NOT_TOLD


def test_a_silence_holds_back_and_lets_go(desk: Desk) -> None:
    desk.silence(10, kv_pools=("pool-*",))
    desk.tell(OPENED)
    desk.run(NOW_MS + 9 * MINUTE_MS)
    assert desk.output.got == []
    desk.run(NOW_MS + 10 * MINUTE_MS)
    assert desk.output.kinds() == [Kind.OPENED]
    assert desk.outcomes() == [Ended.SILENCED, Ended.DELIVERED]


def test_what_is_resolved_while_silenced_is_never_told(desk: Desk) -> None:
    desk.silence(10, tenants=("acme",))
    desk.tell(OPENED)
    desk.run()
    desk.tell(RESOLVED)
    desk.run(NOW_MS + 20 * MINUTE_MS)
    assert desk.output.got == []
    assert [line.answer for line in desk.lines()][1:] == [QUIET, NOT_TOLD]


def test_the_end_of_what_was_told_goes_out_despite_a_silence(desk: Desk) -> None:
    desk.tell(OPENED)
    desk.run()
    desk.silence(10, incidents=("inc-1",))
    desk.tell(RESOLVED)
    desk.run()
    assert desk.output.kinds() == [Kind.OPENED, Kind.RESOLVED]


def test_a_silence_about_something_else_silences_nothing(desk: Desk) -> None:
    desk.silence(10, rules=("BW2*",), tenants=("acme",))
    desk.tell(OPENED)
    desk.run()
    assert desk.output.kinds() == [Kind.OPENED]


def test_a_silence_that_was_ended_holds_nothing_back(desk: Desk) -> None:
    desk.silence(10)
    with desk.database.write() as connection:
        assert silences.end(connection, "s-0-10", now_ms=NOW_MS)
        assert not silences.end(connection, "s-0-10", now_ms=NOW_MS + 1)
        assert [one.by for one in silences.newest(connection, limit=5)] == ["ada"]
    desk.tell(OPENED)
    desk.run()
    assert desk.output.kinds() == [Kind.OPENED]


def test_more_than_the_rate_waits_and_nothing_is_left_out(database: Database) -> None:
    desk = Desk(database, per_minute=6)
    desk.tell(*(change(name=f"inc-{number}") for number in range(18)))
    desk.run()
    assert len(desk.output.got) == 6
    desk.run(NOW_MS + MINUTE_MS + 1_000)
    assert len(desk.output.got) == 12
    desk.run(NOW_MS + 2 * MINUTE_MS + 2_000)
    assert len({one.id for one in desk.output.got}) == 18


@pytest.mark.parametrize(("per_minute", "takes_ms"), [(6, 20), (1_000, 2_500)])
def test_a_backlog_keeps_nothing_from_being_told_again(
    database: Database, per_minute: int, takes_ms: int
) -> None:
    desk = Desk(database, per_minute=per_minute, resend_ms=MINUTE_MS)
    desk.tell(*(change(name=f"inc-{number:04}") for number in range(40)))
    last_ms: dict[str, int] = {}
    send = desk.output.send

    def noted(told: Notification, *, at_ms: int) -> Outcome:
        assert at_ms - last_ms.get(told.incident_id, at_ms) <= HOLDS_FOR * MINUTE_MS
        last_ms[told.incident_id] = at_ms
        desk.clock.at_ms += takes_ms
        return send(told, at_ms=at_ms)

    desk.output.send = noted  # type: ignore[assignment,method-assign]
    desk.run(NOW_MS + 9 * MINUTE_MS)
    assert len(last_ms) == 40
    assert all(desk.clock() - at_ms <= HOLDS_FOR * MINUTE_MS for at_ms in last_ms.values())


def test_an_output_that_needs_telling_again_no_more_is_told_once_more(database: Database) -> None:
    before = Desk(database, resend_ms=MINUTE_MS)
    before.tell(OPENED)
    before.run()
    after = Desk(database, per_minute=1)
    after.clock.at_ms += MINUTE_MS
    after.tell(*(change(name=f"inc-{number}", at_ms=after.clock()) for number in (2, 3, 4)))
    after.run()
    assert [one.incident_id for one in after.output.got].count("inc-1") == 1
    assert len(after.output.got) == 2
    after.run(NOW_MS + HOUR_MS)
    assert len(after.output.got) == 4


def test_what_stays_undeliverable_for_days_is_given_up(desk: Desk) -> None:
    desk.output.answers += [Retry("no connection")] * 100_000
    desk.tell(OPENED)
    while desk.clock() <= NOW_MS + GIVE_UP_MS:
        desk.run()
        assert desk.outcomes()[-1] is Ended.FAILED
        desk.clock.at_ms += HOUR_MS
    desk.run()
    assert desk.lines()[-1].answer == TOO_OLD
    assert desk.lines()[-1].outcome is Ended.DROPPED


def test_an_open_incident_is_told_again_until_a_while_after_its_end(database: Database) -> None:
    desk = Desk(database, resend_ms=MINUTE_MS)
    desk.tell(OPENED)
    desk.run(NOW_MS + 5 * MINUTE_MS)
    assert desk.output.kinds() == [Kind.OPENED] * 6
    desk.tell(change(ChangeKind.RESOLVED, version=2, at_ms=desk.clock()))
    desk.run(NOW_MS + 60 * MINUTE_MS)
    again = 1 + RESOLVED_AGAIN_MS // MINUTE_MS
    assert desk.output.kinds()[6:] == [Kind.RESOLVED] * again
    assert desk.outcomes() == [Ended.DELIVERED] * 2


def test_telling_again_goes_on_after_it_failed(database: Database) -> None:
    desk = Desk(database, resend_ms=MINUTE_MS)
    desk.tell(OPENED)
    desk.run()
    desk.output.answers += [Retry("500"), Rejected("400")]
    desk.run(NOW_MS + 4 * MINUTE_MS)
    assert len(desk.output.got) >= 5
    assert desk.outcomes() == [Ended.DELIVERED, Ended.FAILED, Ended.REJECTED]


def test_a_fault_in_an_output_is_a_failure_and_tells_no_content(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Listed):
        def send(self, notification: Notification, *, at_ms: int) -> Outcome:
            raise RuntimeError(f"{notification.title} {at_ms}")

    desk.lane.output = Broken()
    desk.tell(OPENED)
    desk.run()
    assert [line.answer for line in desk.lines()] == ["internal fault"]
    assert "RuntimeError" in caplog.text
    assert kit.incident().title not in caplog.text


def test_an_outcome_that_the_store_did_not_take_is_not_sent_again(desk: Desk) -> None:
    desk.tell(OPENED, GRAVER)
    with desk.database.write() as connection:
        connection.execute(text("ALTER TABLE journal RENAME TO journal_away"))
    with pytest.raises(StoreError):
        desk.lane.step()
    with pytest.raises(StoreError):
        desk.lane.step()
    with desk.database.write() as connection:
        connection.execute(text("ALTER TABLE journal_away RENAME TO journal"))
    desk.run()
    assert [one.sequence for one in desk.output.got] == [1, 2]
    assert desk.outcomes() == [Ended.DELIVERED] * 2


def test_what_is_delivered_stays_so_after_a_restart(database: Database) -> None:
    before = Desk(database)
    before.tell(OPENED, GRAVER)
    before.run()
    after = Desk(database)
    after.tell(OPENED, GRAVER)  # the change is read again: nothing new
    after.run(NOW_MS + MINUTE_MS)
    assert after.output.got == []
    with database.write() as connection:
        connection.execute(incidents.delete())
        outbox.prune(connection, before_ms=NOW_MS + MINUTE_MS)
        journal.prune(connection, before_ms=NOW_MS + MINUTE_MS)
        assert outbox.counts(connection) == {}
        assert journal.newest(connection, limit=5) == []
