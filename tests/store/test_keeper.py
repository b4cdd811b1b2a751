"""The loop of an api: goes on whatever is away, says so, resolves and forgets in their time."""

from collections.abc import Callable, Sequence

import pytest
from sqlalchemy import Connection

from detector.api.keeper import AWAY_S, FORGET_S, RESOLVE_S, Keeper
from detector.errors import BrokerError, StoreError
from exporters.incidents.model import Change, ChangeKind, State
from exporters.store import incidents as incident_rows
from exporters.store.database import Database
from exporters.store.request_rows import requests_named
from exporters.store.settings import StoreRetentionSettings
from ingest.broker import TopicPartition
from ingest.memory_io import MemoryReader
from tests.store.made import found
from tests.store.topics import Results, request


class Loop:
    """A keeper whose clock is set by hand; `fails` makes its store fail."""

    def __init__(self, database: Database, results: Results | None = None) -> None:
        self.database = database
        self.now_s = 0.0
        self.paused: list[float] = []
        self.woken = 0
        self.fails = False
        self.results = results or Results()
        clock: Callable[[], float] = lambda: self.now_s  # noqa: E731 - read again every time
        recorder = self.results.recorder(
            database, announce=self._told, now_ms=lambda: int(self.now_s * 1000)
        )
        self.keeper = Keeper(
            recorder,
            database,
            StoreRetentionSettings(requests_ms=1_000_000),
            now_ms=lambda: int(self.now_s * 1000),
            clock=clock,
            pause=self.paused.append,
            on_change=self._wake,
        )

    def turn(self, now_s: float) -> None:
        self.now_s = now_s
        self.keeper.turn(0)

    def _wake(self) -> None:
        self.woken += 1

    def _told(self, _connection: Connection, _changes: Sequence[Change]) -> None:
        if self.fails:
            raise StoreError("the disk is full", where="here", hint="make room")


@pytest.fixture
def loop(database: Database) -> Loop:
    return Loop(database)


def test_a_store_that_fails_is_waited_for_and_nothing_is_lost(
    loop: Loop, caplog: pytest.LogCaptureFixture
) -> None:
    loop.results.send(found("f1", 0))
    loop.fails = True
    for now_s in (0, 1, 2):
        loop.turn(now_s)
    assert loop.keeper.problem == "here: the disk is full (make room)"
    assert loop.keeper.store_failures == 3
    assert loop.paused == [AWAY_S] * 3
    assert len(caplog.records) == 1, "told once"
    loop.fails = False
    loop.turn(3)
    assert loop.keeper.problem is None
    assert loop.keeper.changes == {ChangeKind.OPENED: 1}
    assert loop.woken == 1


def test_quiet_incidents_are_resolved_every_few_seconds(loop: Loop) -> None:
    loop.results.send(found("f1", 0))
    loop.turn(0)
    loop.turn(20 - 0.1)
    assert loop.keeper.changes == {ChangeKind.OPENED: 1}
    loop.turn(20 + RESOLVE_S)
    assert loop.keeper.changes == {ChangeKind.OPENED: 1, ChangeKind.RESOLVED: 1}
    assert loop.woken == 2
    with loop.database.read() as connection:
        assert incident_rows.count_by_state(connection)[State.RESOLVED] == 1


def resolved(loop: Loop) -> int:
    return loop.keeper.changes[ChangeKind.RESOLVED]


def test_nothing_is_resolved_while_its_news_waits_in_kafka(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The api was busy for half a minute, and its first poll brings nothing yet."""
    loop.results.send(found("f1", 0))
    loop.turn(0)
    loop.results.send(found("f2", 15))
    with monkeypatch.context() as nothing_comes:
        nothing_comes.setattr(MemoryReader, "poll", lambda *_: [])
        for now_s in range(30, 60):
            loop.turn(now_s)
    assert not resolved(loop)
    loop.turn(61)
    for now_s in range(62, 81):
        loop.turn(now_s)
    assert not resolved(loop), "f2 is news of 61"
    for now_s in range(81, 81 + 3 * int(RESOLVE_S)):
        loop.turn(now_s)
    assert resolved(loop) == 1


def test_a_keeper_that_starts_looks_twice_before_it_resolves(loop: Loop) -> None:
    loop.results.send(found("f1", 0))
    loop.turn(0)
    again = Loop(loop.database, loop.results)
    again.turn(1_000)
    assert not resolved(again)
    again.turn(1_000 + RESOLVE_S)
    assert resolved(again) == 1


def test_a_look_before_an_outage_says_nothing_after_it(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> int:
        raise BrokerError("no broker answers", where="here", hint="wait")

    loop.results.send(found("f1", 0))
    loop.turn(0)
    with monkeypatch.context() as broken:
        broken.setattr(MemoryReader, "end", away)
        for now_s in range(20, 30):
            loop.turn(now_s)
    assert loop.keeper.problem is not None
    loop.turn(30)
    assert not resolved(loop)
    loop.turn(30 + RESOLVE_S)
    assert resolved(loop) == 1


def test_what_comes_all_the_time_keeps_nothing_open(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever the keeper looks, something has just come."""
    end = MemoryReader.end

    def busy(reader: MemoryReader, at: TopicPartition) -> int:
        loop.results.send_rows(request("r"))
        return end(reader, at)

    loop.results.send(found("f1", 0))
    loop.turn(0)
    monkeypatch.setattr(MemoryReader, "end", busy)
    for now_s in range(1, 31):
        loop.turn(now_s)
    assert resolved(loop) == 1


def test_what_is_old_is_forgotten_from_time_to_time(loop: Loop) -> None:
    loop.turn(0)
    loop.results.send_rows(request("old", 100), request("new", 500))
    loop.turn(FORGET_S - 1)
    loop.turn(1200)
    with loop.database.read() as connection:
        assert requests_named(connection, "old", limit=1) == []
        assert len(requests_named(connection, "new", limit=1)) == 1
