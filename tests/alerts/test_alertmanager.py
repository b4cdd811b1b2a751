"""A real Alertmanager takes our alerts, shows them, routes them to a webhook, and ends them."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from detector.alerting import wall_ms
from detector.finding import Severity
from exporters.incidents.model import ChangeKind
from exporters.outputs.alertmanager import AlertmanagerOutput
from exporters.outputs.settings import AlertmanagerSettings
from exporters.sending.announce import announce
from exporters.sending.lane import Lane
from exporters.store import journal, outbox
from exporters.store.database import Database
from tests.alerts import kit
from tests.alerts.kit import Clock, change, incident
from tests.alerts.simulation import lane
from tests.fakes.receiver import Receiver, receiver
from tests.services.alertmanager import Alertmanager, alertmanager

PATIENCE_S = 60.0
RESEND_MS = 60_000


@pytest.fixture(scope="module")
def hook() -> Iterator[Receiver]:
    with receiver() as there:
        yield there


@pytest.fixture(scope="module")
def server(hook: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    with alertmanager(tmp_path_factory.mktemp("alertmanager"), webhook=hook.url) as running:
        yield running


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with kit.store(tmp_path) as opened:
        yield opened


class Chain:
    """Changes of one incident, through the outbox and a lane, to a real Alertmanager."""

    def __init__(self, name: str, server: Alertmanager, database: Database) -> None:
        self.name = name
        self.clock = Clock(wall_ms())
        self._database = database
        self._settings = AlertmanagerSettings(
            kind="alertmanager",
            name="am",
            url=server.url,
            allow_private=True,
            resend_ms=RESEND_MS,
        )
        self._lane: Lane = lane(
            AlertmanagerOutput(self._settings), database, self.clock, all_outputs=[]
        )

    def tell(self, kind: ChangeKind, version: int, **changed: Any) -> None:
        told = change(kind, self.name, version=version, at_ms=self.clock(), **changed)
        with self._database.write() as connection:
            kit.keep(connection, [told])
            announce(connection, [told], outputs=[self._settings])
        self.step()

    def step(self) -> int:
        """Send what is due; return when to come again."""
        while (again_ms := self._lane.step()) <= self.clock():
            pass
        return again_ms


def until(found: Callable[[], Any]) -> Any:
    """Return what is found as soon as it is something."""
    until_s = time.monotonic() + PATIENCE_S
    while not (answer := found()):
        assert time.monotonic() < until_s, "it did not come"
        time.sleep(0.05)
    return answer


def about(alerts: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [one for one in alerts if one["labels"]["incident"] == name]


def routed(hook: Receiver, name: str, status: str) -> list[dict[str, Any]]:
    """Return the alerts of an incident that Alertmanager has sent on with a status."""
    told = [json.loads(call.body) for call in list(hook.calls)]
    alerts = [alert for one in told for alert in one["alerts"]]
    return [one for one in about(alerts, name) if one["status"] == status]


def test_an_incident_is_shown_routed_and_ended(
    server: Alertmanager, hook: Receiver, database: Database
) -> None:
    chain = Chain("inc-am-1", server, database)
    chain.tell(ChangeKind.OPENED, 1)

    (shown,) = until(lambda: about(server.alerts(), "inc-am-1"))
    assert shown["labels"] == {
        "alertname": "BleedwatchIncident",
        "incident": "inc-am-1",
        "severity": "critical",
        "bleedwatch_severity": "high",
    }
    assert shown["annotations"]["summary"] == incident().title
    assert shown["annotations"]["tenants"] == "acme, globex"
    (firing,) = until(lambda: routed(hook, "inc-am-1", "firing"))
    assert firing["annotations"]["rules"] == "BW001"

    chain.clock.at_ms = wall_ms()
    chain.tell(ChangeKind.RESOLVED, 2)
    until(lambda: routed(hook, "inc-am-1", "resolved"))
    assert about(server.alerts(), "inc-am-1") == []


def test_an_open_incident_is_sent_again_and_holds_longer(
    server: Alertmanager, database: Database
) -> None:
    chain = Chain("inc-am-2", server, database)
    chain.tell(ChangeKind.OPENED, 1)
    (before,) = until(lambda: about(server.alerts(), "inc-am-2"))
    assert chain.step() == chain.clock() + RESEND_MS

    chain.clock.at_ms += RESEND_MS
    chain.step()

    (after,) = until(lambda: about(server.alerts(), "inc-am-2"))
    gained = datetime.fromisoformat(after["endsAt"]) - datetime.fromisoformat(before["endsAt"])
    assert gained.total_seconds() == RESEND_MS / 1_000


def test_a_graver_incident_is_told_as_such(
    server: Alertmanager, hook: Receiver, database: Database
) -> None:
    chain = Chain("inc-am-3", server, database)
    chain.tell(ChangeKind.OPENED, 1)
    lead = incident().lead
    graver = msgspec.structs.replace(lead, severity=Severity.CRITICAL)
    chain.tell(ChangeKind.SEVERITY_RAISED, 2, lead=graver)
    found = until(
        lambda: [
            one
            for one in about(server.alerts(), "inc-am-3")
            if one["labels"]["bleedwatch_severity"] == "critical"
        ]
    )
    assert len(found) == 1
    until(lambda: len(routed(hook, "inc-am-3", "firing")) >= 2)


@pytest.mark.parametrize("ahead_ms", [3_000, 300_000])
def test_an_engine_whose_clock_is_ahead_is_told_of_from_begin_to_end(
    server: Alertmanager, hook: Receiver, database: Database, ahead_ms: int
) -> None:
    name = f"inc-ahead-{ahead_ms}"
    chain = Chain(name, server, database)
    opened_ms = chain.clock() + ahead_ms
    chain.tell(ChangeKind.OPENED, 1, opened_at_ms=opened_ms)
    until(lambda: routed(hook, name, "firing"))
    chain.clock.at_ms = wall_ms()
    chain.tell(ChangeKind.RESOLVED, 2, opened_at_ms=opened_ms)
    until(lambda: routed(hook, name, "resolved"))
    chain.clock.at_ms += 3_600_000
    chain.step()
    with database.read() as connection:
        assert outbox.next_due_ms(connection, "am") == outbox.NEVER_MS
        outcomes = {one.outcome for one in journal.newest(connection, limit=9)}
    assert outcomes == {journal.Ended.DELIVERED}
