"""Ten minutes with receivers that are down, slow, broken and gone: nothing lost, nothing twice."""

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from exporters.sending.announce import TOLD, notification_id
from exporters.store import journal
from exporters.store.database import Database
from exporters.store.journal import Attempt, Ended
from tests.alerts import kit
from tests.alerts.simulation import Simulation, second_of
from tests.fakes.receiver import Call, Manner, Receiver, receiver

MINUTES = 10

HARD: tuple[tuple[int, Manner], ...] = (
    (30, "down"),
    (90, "slow"),
    (150, "fails"),
    (210, "takes"),
    (240, "busy"),
    (330, "breaks_off"),
    (420, "redirects"),
    (500, "fails"),
    (540, "takes"),
)
"""From which second on the receiver does what."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    with kit.store(tmp_path_factory.mktemp("store")) as opened:
        yield opened


@pytest.fixture(scope="module")
def receivers() -> Iterator[dict[str, Receiver]]:
    with ExitStack() as stack:
        inside = stack.enter_context(receiver())
        yield {
            "hard": stack.enter_context(receiver(slow_s=2.5, elsewhere=inside.url)),
            "fine": stack.enter_context(receiver()),
            "gone": stack.enter_context(receiver()),
            "inside": inside,
        }


@pytest.fixture(scope="module")
def simulated(database: Database, receivers: dict[str, Receiver]) -> Simulation:
    """Ten minutes, and as much as it takes until nothing waits."""
    outputs = {name: receivers[name] for name in ("hard", "fine", "gone")}
    manners: dict[str, tuple[tuple[int, Manner], ...]] = {
        "hard": HARD,
        "gone": ((120, "gone"), (400, "takes")),
    }
    made = Simulation(database, outputs, manners)
    made.at[450] = lambda: made.restart("gone")
    made.run(60 * MINUTES, incidents=20, every_s=4)
    made.drain(most_s=120)
    return made


def lines(database: Database, output: str) -> list[Attempt]:
    with database.read() as connection:
        return journal.newest(connection, limit=100_000, output=output)[::-1]


def expected(simulated: Simulation, output: str) -> dict[str, list[str]]:
    """Return the ids that an output must have been told of each incident, in order."""
    found: dict[str, list[str]] = defaultdict(list)
    for change in simulated.told:
        if change.kind in TOLD:
            one = change.incident
            found[one.id].append(notification_id(output, one.id, one.version))
    return found


def taken(calls: list[Call]) -> dict[str, list[str]]:
    """Return the ids that a receiver took and said so, of each incident, in order."""
    found: dict[str, list[str]] = defaultdict(list)
    for call in calls:
        incident = json.loads(call.body)["data"]["incident"]
        if call.manner == "takes" and incident is not None:
            found[incident].append(call.id)
    return found


def test_ten_minutes(
    simulated: Simulation, database: Database, receivers: dict[str, Receiver]
) -> None:
    assert simulated.open_rows() == 0
    assert len(simulated.told) > 100

    for name in ("hard", "fine", "gone"):  # nothing lost, nothing twice, in order
        assert taken(receivers[name].calls) == expected(simulated, name)

    # the hard receiver did everything it can do, and met a call each time
    assert {call.manner for call in receivers["hard"].calls} == {
        manner for _, manner in HARD if manner != "down"
    }
    assert receivers["inside"].calls == []
    assert max(Counter(call.id for call in receivers["hard"].calls).values()) > 1

    # others did not wait for it
    for line in lines(database, "fine"):
        assert line.outcome is Ended.DELIVERED
    delays = [
        line.at_ms - change.at_ms
        for change, line in zip(
            [one for one in simulated.told if one.kind in TOLD],
            [line for line in lines(database, "fine") if line.incident_id],
            strict=True,
        )
    ]
    assert max(delays) == 0

    # and it was not called all the time while it was broken
    for since, until in ((30, 90), (150, 210)):
        tries = [one for one in lines(database, "hard") if since <= second_of(one.at_ms) < until]
        assert 2 <= len(tries) <= 12


def test_a_busy_receiver_is_left_alone_for_as_long_as_it_asks(
    simulated: Simulation, database: Database
) -> None:
    assert simulated.told
    busy = [
        second_of(line.at_ms)
        for line in lines(database, "hard")
        if line.answer == "429" and second_of(line.at_ms) < 330
    ]
    assert len(busy) >= 3
    assert all(later - earlier >= 20 for earlier, later in itertools.pairwise(busy))


def test_a_receiver_that_is_gone_is_told_to_the_others_and_called_no_more(
    simulated: Simulation, database: Database, receivers: dict[str, Receiver]
) -> None:
    assert simulated.told
    assert [call.manner for call in receivers["gone"].calls].count("gone") == 1
    (line,) = [one for one in lines(database, "gone") if one.outcome is Ended.GONE]
    assert 120 <= second_of(line.at_ms) < 130
    for name in ("hard", "fine"):
        told = [json.loads(call.body) for call in receivers[name].calls if call.manner == "takes"]
        (degraded,) = [one for one in told if one["type"] == "monitor.degraded"]
        assert "output gone" in degraded["data"]["title"]


def test_the_journal_says_what_became_of_every_attempt(
    simulated: Simulation, database: Database, receivers: dict[str, Receiver]
) -> None:
    assert simulated.told
    reached = [one for one in lines(database, "hard") if one.answer != "no connection"]
    answers = {
        "takes": "204",
        "fails": "500",
        "busy": "429",
        "slow": "timed out",
        "breaks_off": "the answer broke off",
        "redirects": "307: redirects are not followed",
    }
    calls = receivers["hard"].calls
    assert [one.notification_id for one in reached] == [call.id for call in calls]
    assert [one.answer for one in reached] == [answers[call.manner] for call in calls]
    again = Counter(one.notification_id for one in reached if one.outcome is Ended.DELIVERED)
    assert set(again.values()) == {1}
