"""An outcome that one process writes down late undoes nothing of what another did meanwhile."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from detector.errors import StoreError
from exporters.incidents.model import ChangeKind
from exporters.outputs.contract import Delivered, Outcome, Rejected, Retry
from exporters.outputs.notification import Kind
from exporters.sending.lane import Sent
from exporters.store import outbox
from exporters.store.database import Database
from exporters.store.outbox import State
from tests.alerts import kit
from tests.alerts.desk import HOUR_MS, MINUTE_MS, Desk
from tests.alerts.kit import change

OUTCOMES = [Delivered("200"), Retry("timed out"), Rejected("400"), Rejected("410", gone=True)]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with kit.store(tmp_path) as opened:
        yield opened


def step_without_store(desk: Desk, outcome: Outcome) -> None:
    """Send, and keep the outcome, as the store does not take it."""
    real = desk.lane._settle

    def away(sent: Sent) -> None:
        raise StoreError("the store is away", where=sent.due.output, hint="wait")

    desk.output.answers.append(outcome)
    desk.lane._settle = away  # type: ignore[method-assign]
    with contextlib.suppress(StoreError):
        desk.lane.step()
    desk.lane._settle = real  # type: ignore[method-assign]
    assert not desk.output.answers


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize(
    ("resend_ms", "is_again"), [(None, False), (MINUTE_MS, False), (MINUTE_MS, True)]
)
def test_an_outcome_that_comes_late_undoes_nothing(
    database: Database, outcome: Outcome, resend_ms: int | None, *, is_again: bool
) -> None:
    old, new = Desk(database, resend_ms=resend_ms), Desk(database, resend_ms=resend_ms)
    old.tell(change())
    if is_again:
        old.run()
        old.clock.at_ms += MINUTE_MS
    step_without_store(old, outcome)
    new.clock.at_ms = old.clock() + MINUTE_MS
    new.run()
    new.tell(change(ChangeKind.RESOLVED, version=2))
    new.run(new.clock() + HOUR_MS)
    count = len(new.output.got)
    old.lane.settle()
    new.run(new.clock() + HOUR_MS)
    assert new.output.kinds()[-1] is Kind.RESOLVED
    assert len(new.output.got) == count
    with database.read() as connection:
        assert outbox.counts(connection) == {"listed": {State.DELIVERED: 2}}
