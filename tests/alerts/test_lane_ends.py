"""That an incident is over reaches who was told of it, whatever happened to output and row."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from exporters.incidents.model import Change, ChangeKind, State
from exporters.outputs.contract import Rejected, Retry
from exporters.outputs.notification import Kind
from exporters.sending.decide import OVER
from exporters.sending.lane import RESOLVED_AGAIN_MS
from exporters.store.database import Database
from exporters.store.journal import Ended
from exporters.store.tables import incidents
from tests.alerts import kit
from tests.alerts.desk import HOUR_MS, MINUTE_MS, Desk
from tests.alerts.kit import NOW_MS, change

OPENED = change(ChangeKind.OPENED)
GRAVER = change(ChangeKind.SEVERITY_RAISED, version=2)
MERGED = change(ChangeKind.MERGED, version=3, state=State.MERGED, resolved_at_ms=None)
RESOLVED = change(ChangeKind.RESOLVED, version=3)

TOLD_ITS_END = 1 + RESOLVED_AGAIN_MS // MINUTE_MS


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with kit.store(tmp_path) as opened:
        yield opened


@pytest.fixture
def desk(database: Database) -> Desk:
    """Return one whose output must be told again."""
    return Desk(database, resend_ms=MINUTE_MS)


def test_an_end_that_is_rejected_ends_the_telling_again(desk: Desk) -> None:
    desk.tell(OPENED)
    desk.run()
    desk.output.answers.append(Rejected("400"))
    desk.tell(RESOLVED)
    desk.run(NOW_MS + HOUR_MS)
    assert desk.output.kinds() == [Kind.OPENED, Kind.RESOLVED]
    assert desk.outcomes() == [Ended.DELIVERED, Ended.REJECTED]


@pytest.mark.parametrize("end", [RESOLVED, MERGED])
def test_an_output_that_comes_back_ends_what_it_told_of_before(desk: Desk, end: Change) -> None:
    desk.tell(OPENED)
    desk.run()
    desk.tell(end, to_it=False)
    desk.clock.at_ms += HOUR_MS
    desk.run(NOW_MS + 3 * HOUR_MS)
    assert desk.output.kinds() == [Kind.OPENED] + [Kind.RESOLVED] * TOLD_ITS_END
    told = desk.output.got[1]
    assert (told.reason, told.sequence) == (OVER, 3)
    assert told.resolved_at_ms == (NOW_MS + HOUR_MS if end is MERGED else NOW_MS)


def test_what_was_retained_no_longer_is_ended_too(desk: Desk) -> None:
    desk.tell(OPENED)
    desk.run()
    with desk.database.write() as connection:
        connection.execute(incidents.delete())
    desk.run(NOW_MS + HOUR_MS)
    assert desk.output.kinds() == [Kind.OPENED] + [Kind.RESOLVED] * TOLD_ITS_END


def test_an_output_that_comes_back_is_not_told_of_what_is_over(database: Database) -> None:
    desk = Desk(database)
    desk.output.answers.append(Retry("500"))
    desk.tell(OPENED)
    desk.lane.step()
    desk.tell(GRAVER)
    desk.tell(RESOLVED, to_it=False)
    desk.run(NOW_MS + HOUR_MS)
    assert desk.output.kinds() == [Kind.OPENED]
    assert desk.outcomes() == [Ended.FAILED, Ended.DROPPED, Ended.DROPPED]
    assert desk.lines()[-1].answer == OVER


def test_news_that_waited_beyond_the_end_gives_way_to_the_end(database: Database) -> None:
    desk = Desk(database)
    desk.tell(OPENED)
    desk.run()
    desk.tell(GRAVER)
    desk.tell(RESOLVED, to_it=False)
    desk.run(NOW_MS + HOUR_MS)
    assert desk.output.kinds() == [Kind.OPENED, Kind.RESOLVED]
    assert desk.outcomes() == [Ended.DELIVERED, Ended.DROPPED, Ended.DELIVERED]


def test_what_was_reopened_meanwhile_goes_on(desk: Desk) -> None:
    desk.tell(OPENED)
    desk.run()
    desk.tell(change(ChangeKind.RESOLVED, version=2), to_it=False)
    desk.tell(change(ChangeKind.REOPENED, version=3, state=State.REOPENED), to_it=False)
    desk.run(NOW_MS + 3 * MINUTE_MS)
    assert desk.output.kinds() == [Kind.OPENED] * 4


def test_an_acknowledgement_after_the_end_is_told(database: Database) -> None:
    desk = Desk(database)
    desk.tell(OPENED, RESOLVED)
    desk.tell(change(ChangeKind.ACKNOWLEDGED, version=4, state=State.RESOLVED))
    desk.run(NOW_MS + HOUR_MS)
    assert desk.output.kinds() == [Kind.OPENED, Kind.RESOLVED, Kind.ACKNOWLEDGED]


def test_an_acknowledgement_after_the_end_opens_nothing_for_long(desk: Desk) -> None:
    desk.tell(OPENED, RESOLVED)
    desk.tell(change(ChangeKind.ACKNOWLEDGED, version=4, state=State.RESOLVED))
    desk.run(NOW_MS + HOUR_MS)
    assert desk.output.kinds()[:3] == [Kind.OPENED, Kind.RESOLVED, Kind.ACKNOWLEDGED]
    assert desk.output.kinds()[3:] == [Kind.RESOLVED] * TOLD_ITS_END
