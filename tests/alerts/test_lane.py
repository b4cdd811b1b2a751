"""One output's lane on a real store: silences, pace, order, rejections, a store that fails."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from detector.errors import StoreError
from exporters.incidents.model import Change, ChangeKind
from exporters.outputs.contract import Delivered, Outcome, Rejected, Retry
from exporters.outputs.notification import Kind, Notification
from exporters.outputs.settings import StdoutSettings
from exporters.sending.announce import announce
from exporters.sending.decide import NOT_TOLD, QUIET, TOO_OLD
from exporters.sending.lane import RESOLVED_AGAIN_MS, Lane
from exporters.store import journal, outbox, silences
from exporters.store.database import Database
from exporters.store.journal import Ended
from exporters.store.silences import Silence, Silenced
from tests.alerts import kit
from tests.alerts.kit import NOW_MS, Clock, change
from tests.alerts.simulation import GIVE_UP_MS, lane

MINUTE_MS = 60_000


class Listed:
    """An output that answers as it was told to, and delivers when nothing is left of that."""

    name = "listed"

    def __init__(self, resend_ms: int | None = None) -> None:
        self.resend_ms = resend_ms
        self.answers: deque[Outcome] = deque()
        self.got: list[Notification] = []

    def send(self, notification: Notification, *, at_ms: int) -> Outcome:
        assert at_ms > 0
        self.got.append(notification)
        return self.answers.popleft() if self.answers else Delivered("ok")

    def close(self) -> None:
        """Nothing is open."""

    def kinds(self) -> list[Kind]:
        return [one.kind for one in self.got]


class Desk:
    """A store, an output, its lane, and the clock of both."""

    def __init__(
        self, database: Database, *, per_minute: int = 1_000, resend_ms: int | None = None
    ) -> None:
        self.database = database
        self.clock = Clock()
        self.output = Listed(resend_ms)
        self.lane: Lane = lane(
            self.output, database, self.clock, all_outputs=[], per_minute=per_minute
        )

    def tell(self, *changes: Change) -> None:
        settings = StdoutSettings(kind="stdout", name="listed")
        with self.database.write() as connection:
            announce(connection, changes, outputs=[settings])

    def run(self, until_ms: int | None = None) -> None:
        """Let time pass to an instant, or do what is to be done now."""
        end_ms = self.clock() if until_ms is None else until_ms
        while self.clock() <= end_ms:
            again_ms = self.lane.step()
            if again_ms > end_ms:
                break
            self.clock.at_ms = max(again_ms, self.clock())
        self.clock.at_ms = end_ms

    def silence(self, minutes: int, **about: tuple[str, ...]) -> None:
        made = Silence(
            id=f"s-{len(about)}-{minutes}",
            about=Silenced(**about),
            starts_at_ms=self.clock(),
            ends_at_ms=self.clock() + minutes * MINUTE_MS,
            by="ada",
            comment="known",
        )
        with self.database.write() as connection:
            silences.add(connection, made)

    def outcomes(self) -> list[Ended]:
        return [line.outcome for line in self.lines()]

    def lines(self) -> list[journal.Attempt]:
        with self.database.read() as connection:
            return journal.newest(connection, limit=1_000)[::-1]


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


def test_what_stays_undeliverable_for_days_is_given_up(desk: Desk) -> None:
    desk.output.answers += [Retry("no connection")] * 100_000
    desk.tell(OPENED)
    desk.run(NOW_MS + 10 * MINUTE_MS)
    desk.clock.at_ms = NOW_MS + GIVE_UP_MS + 1
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
        outbox.prune(connection, before_ms=NOW_MS + MINUTE_MS)
        journal.prune(connection, before_ms=NOW_MS + MINUTE_MS)
        assert outbox.counts(connection) == {}
        assert journal.newest(connection, limit=5) == []
