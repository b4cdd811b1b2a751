"""Heartbeats on their way out: once a minute, only to outputs for them, and never an old one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from detector.alerting import new_outputs
from detector.config.root import Settings
from exporters.outputs.formats.alerts import labels
from exporters.outputs.notification import Kind
from exporters.outputs.settings import StdoutSettings
from exporters.sending.announce import announce, announce_gone, announce_heartbeats
from exporters.sending.decide import FRESH_MS, STALE
from exporters.sending.lane import Lane
from exporters.store import heartbeats, journal, outbox
from exporters.store.database import Database
from exporters.store.heartbeats import KEEP_MS, Heartbeat
from exporters.store.outbox import State
from tests.alerts import kit
from tests.alerts.kit import NOW_MS, Clock, change, notification


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with kit.store(tmp_path) as opened:
        yield opened


def outputs(folder: Path) -> tuple[StdoutSettings, StdoutSettings]:
    people = StdoutSettings(kind="stdout", name="people", path=str(folder / "people"))
    watch = StdoutSettings(kind="stdout", name="watch", path=str(folder / "watch"), heartbeats=True)
    return people, watch


def hear(database: Database, folder: Path, at_ms: int, sent_ms: int) -> None:
    with database.write() as connection:
        announce_heartbeats(
            connection, [Heartbeat("e", sent_ms)], outputs=outputs(folder), now_ms=at_ms
        )


def waiting(database: Database) -> dict[str, int]:
    with database.read() as connection:
        return {name: sum(found.values()) for name, found in outbox.counts(connection).items()}


def lane(database: Database, folder: Path, clock: Clock) -> Lane:
    made = new_outputs(Settings(outputs=outputs(folder)))[1]
    return Lane(
        made, database, per_minute=60, give_up_ms=86_400_000, now_ms=clock,
        chance=lambda: 0.5, on_gone=lambda *_: None,
    )  # fmt: skip


def test_an_output_for_heartbeats_gets_one_a_minute_and_nothing_else(
    database: Database, tmp_path: Path
) -> None:
    for second in (0, 10, 59, 60):
        hear(database, tmp_path, NOW_MS + second * 1000, NOW_MS + second * 1000 - 500)
    assert waiting(database) == {"watch": 2}
    with database.write() as connection:
        announce(connection, [change()], outputs=outputs(tmp_path))
        announce_gone(connection, "else", outputs=outputs(tmp_path), at_ms=NOW_MS)
    assert waiting(database) == {"watch": 2, "people": 2}


def test_it_is_sent_as_a_heartbeat(database: Database, tmp_path: Path) -> None:
    hear(database, tmp_path, NOW_MS, NOW_MS - 500)
    lane(database, tmp_path, Clock()).step()
    (line,) = (tmp_path / "watch").read_text().splitlines()
    assert json.loads(line)["type"] == "monitor.heartbeat"
    assert json.loads(line)["data"]["incident"] is None


def test_one_that_comes_late_says_nothing_about_now(database: Database, tmp_path: Path) -> None:
    hear(database, tmp_path, NOW_MS, NOW_MS - FRESH_MS - 1)
    assert waiting(database) == {}


def test_one_that_its_receiver_did_not_take_in_time_is_dropped(
    database: Database, tmp_path: Path
) -> None:
    hear(database, tmp_path, NOW_MS, NOW_MS)
    clock = Clock(NOW_MS + FRESH_MS + 1)
    lane(database, tmp_path, clock).step()
    assert not (tmp_path / "watch").exists() or not (tmp_path / "watch").read_text()
    with database.read() as connection:
        assert outbox.counts(connection) == {"watch": {State.DROPPED: 1}}
        assert [line.answer for line in journal.newest(connection, limit=9)] == [STALE]


def test_what_was_sent_of_them_is_forgotten_after_a_day(database: Database, tmp_path: Path) -> None:
    hear(database, tmp_path, NOW_MS, NOW_MS)
    lane(database, tmp_path, Clock()).step()
    with database.write() as connection:
        announce(connection, [change()], outputs=outputs(tmp_path))
        heartbeats.forget(connection, now_ms=NOW_MS + KEEP_MS + 1)
    assert waiting(database) == {"people": 1}
    with database.read() as connection:
        assert list(journal.newest(connection, limit=9)) == []


def test_in_the_words_of_prometheus_all_of_them_are_one_alert() -> None:
    told = notification(Kind.HEARTBEAT, incident_id="")
    other = notification(Kind.HEARTBEAT, incident_id="", id="ntf-other")
    assert labels(told) == labels(other)
    assert labels(told)["alertname"] == "BleedwatchHeartbeat"
