"""What a silence holds back: let go when it is ended early, dropped when its incident ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exporters.incidents.model import ChangeKind
from exporters.outputs.notification import Kind
from exporters.sending.decide import NOT_TOLD, QUIET
from exporters.store import outbox, silences
from exporters.store.database import Database
from exporters.store.erasure import erase_tenant
from exporters.store.journal import Ended
from tests.alerts import kit
from tests.alerts.desk import HOUR_MS, Desk
from tests.alerts.kit import NOW_MS, change

OPENED = change(ChangeKind.OPENED)
GRAVER = change(ChangeKind.SEVERITY_RAISED, version=2)
RESOLVED = change(ChangeKind.RESOLVED, version=3)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with kit.store(tmp_path) as opened:
        yield Desk(opened)


def end(database: Database, silence_id: str, now_ms: int) -> None:
    with database.write() as connection:
        assert silences.end(connection, silence_id, now_ms=now_ms)


def test_a_silence_that_is_ended_early_lets_go(desk: Desk) -> None:
    desk.silence(7 * 24 * 60, kv_pools=("pool-*",))
    desk.tell(OPENED)
    desk.run(NOW_MS + HOUR_MS)
    assert desk.output.got == []
    end(desk.database, "s-1-10080", desk.clock())
    desk.run()
    assert desk.output.kinds() == [Kind.OPENED]


def test_what_another_silence_holds_is_held_again(desk: Desk) -> None:
    desk.silence(120, kv_pools=("pool-*",))
    desk.silence(60, tenants=("acme",), rules=("BW*",))
    desk.tell(OPENED)
    desk.run()
    end(desk.database, "s-1-120", NOW_MS)
    desk.run(NOW_MS + HOUR_MS - 1)
    assert desk.output.got == []
    desk.run(NOW_MS + HOUR_MS)
    assert desk.output.kinds() == [Kind.OPENED]


def test_a_silence_that_is_erased_lets_go(desk: Desk) -> None:
    desk.silence(120, tenants=("umbrella", "acme"))
    desk.tell(OPENED)
    desk.run()
    with desk.database.write() as connection:
        erase_tenant(connection, "umbrella")
    desk.run()
    assert desk.output.kinds() == [Kind.OPENED]


def test_an_erasure_without_a_silence_lets_go_of_nothing(desk: Desk) -> None:
    desk.silence(120)
    desk.tell(OPENED)
    desk.run()
    with desk.database.write() as connection:
        erase_tenant(connection, "umbrella")
        assert outbox.next_due_ms(connection, "listed") == NOW_MS + 2 * HOUR_MS


def test_an_end_does_not_wait_behind_what_is_silenced(desk: Desk) -> None:
    desk.tell(OPENED)
    desk.run()
    desk.silence(8 * 60)
    desk.tell(GRAVER)
    desk.run()
    desk.tell(RESOLVED)
    desk.run()
    assert desk.output.kinds() == [Kind.OPENED, Kind.RESOLVED]
    dropped = [line.answer for line in desk.lines() if line.outcome is Ended.DROPPED]
    assert dropped == [QUIET]
    desk.run(NOW_MS + 9 * HOUR_MS)
    assert desk.output.kinds() == [Kind.OPENED, Kind.RESOLVED]


def test_an_end_drops_nothing_of_another_incident(desk: Desk) -> None:
    desk.tell(OPENED, change(name="inc-2"))
    desk.run()
    desk.silence(60)
    desk.tell(GRAVER, change(ChangeKind.SEVERITY_RAISED, "inc-2", version=2))
    desk.run()
    desk.tell(RESOLVED)
    desk.run(NOW_MS + HOUR_MS)
    assert [one.incident_id for one in desk.output.got[2:]] == ["inc-1", "inc-2"]


def test_what_is_opened_again_and_ends_within_a_silence_is_not_told(desk: Desk) -> None:
    desk.tell(OPENED, change(ChangeKind.RESOLVED, version=2))
    desk.run()
    desk.silence(60)
    desk.tell(change(ChangeKind.REOPENED, version=3))
    desk.run()
    desk.tell(change(ChangeKind.RESOLVED, version=4))
    desk.run(NOW_MS + 2 * HOUR_MS)
    assert desk.output.kinds() == [Kind.OPENED, Kind.RESOLVED]
    assert [line.answer for line in desk.lines()][-2:] == [QUIET, NOT_TOLD]


def test_what_is_opened_again_after_its_end_is_told_with_its_end(desk: Desk) -> None:
    desk.tell(OPENED, change(ChangeKind.RESOLVED, version=2))
    desk.run()
    desk.tell(change(ChangeKind.REOPENED, version=3), change(ChangeKind.RESOLVED, version=4))
    desk.run()
    assert desk.output.kinds() == [Kind.OPENED, Kind.RESOLVED, Kind.REOPENED, Kind.RESOLVED]
