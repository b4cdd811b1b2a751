"""Heartbeats that arrive: noted by sender, told to outputs for them, never an incident."""

from collections.abc import Sequence
from typing import Final

import msgspec
import pytest
from sqlalchemy import Connection

from detector.finding import Finding
from detector.heartbeat import RULE, SINK, SOURCE, pool_of, request_id
from exporters.store import heartbeats
from exporters.store import incidents as incident_rows
from exporters.store.database import Database
from exporters.store.heartbeats import KEEP_MS, Heartbeat
from tests.store.made import found
from tests.store.topics import Results

NOW_MS: Final = 1_000_000_000


def beat(at_ms: int, sender: str = "engine-1", **changed: str) -> Finding:
    """Return the finding of a heartbeat as a worker tells it."""
    made = found(
        f"beat-{sender}-{at_ms}", at_ms / 1000, rule=RULE, pool=pool_of(sender),
        request=request_id(at_ms, SINK), sink=SINK, source=SOURCE,
    )  # fmt: skip
    return msgspec.structs.replace(made, **{"engine": sender, **changed})


def latest(database: Database) -> dict[str, int]:
    with database.read() as connection:
        return heartbeats.latest(connection)


def test_they_are_noted_by_sender_and_no_incident_is_opened(database: Database) -> None:
    results = Results()
    heard: list[Heartbeat] = []

    def hear(_connection: Connection, beats: Sequence[Heartbeat]) -> None:
        heard.extend(beats)

    recorder = results.recorder(database, hear=hear, now_ms=lambda: NOW_MS)
    results.send(beat(1_000), beat(3_000), beat(2_000), beat(4_000, "engine-2"), found("f", 0))
    recorder.turn(0)
    assert latest(database) == {"engine-1": 3_000, "engine-2": 4_000}
    assert {one.sent_ms for one in heard} == {1_000, 2_000, 3_000, 4_000}
    assert recorder.counts["new"] == 1
    with database.read() as connection:
        assert [one.kv_pools for one in incident_rows.newest(connection, limit=9)] == [("a",)]


@pytest.mark.parametrize("lie", [{"rule": RULE}, {"request": request_id(1, SINK), "rule": RULE}])
def test_nobody_elses_finding_passes_for_one(database: Database, lie: dict[str, str]) -> None:
    results = Results()
    recorder = results.recorder(database)
    results.send(found("f", 0, rule=lie["rule"], request=lie.get("request")))
    recorder.turn(0)
    assert latest(database) == {}
    assert [reason for _, reason in recorder.refused] == ["out_of_bounds"]


def test_a_clock_that_is_ahead_does_not_keep_a_sender_alive(database: Database) -> None:
    results = Results()
    recorder = results.recorder(database, now_ms=lambda: NOW_MS)
    results.send(beat(NOW_MS + KEEP_MS))
    recorder.turn(0)
    assert latest(database) == {"engine-1": NOW_MS}


def test_senders_that_are_gone_are_forgotten_but_for_the_last(database: Database) -> None:
    beats = [Heartbeat("old", 1_000), Heartbeat("older", 500)]
    with database.write() as connection:
        heartbeats.put(connection, beats, now_ms=NOW_MS)
        heartbeats.forget(connection, now_ms=NOW_MS + KEEP_MS)
    assert latest(database) == {"old": 1_000}
    with database.write() as connection:
        heartbeats.forget_all(connection)
    assert latest(database) == {}
