"""What workers send becomes rows, incidents and offsets in one transaction, whole and once."""

import random
from collections.abc import Sequence
from contextlib import closing

import pytest
from sqlalchemy import Connection, func, select

from detector.errors import StoreError
from exporters.incidents.model import Change, ChangeKind, State
from exporters.store import incidents as incident_rows
from exporters.store.database import Database, open_store
from exporters.store.offsets import read_offsets
from exporters.store.request_rows import requests_named
from exporters.store.settings import StoreSettings
from exporters.store.tables import findings, request_rows
from ingest.broker import Message
from tests.store.made import found
from tests.store.topics import TOPICS, Results, request

POOLS = "abcdefgh"
"""They lie in both partitions."""


class Told:
    """What was announced; `fails` makes the transaction fail that it happens in."""

    def __init__(self) -> None:
        self.kinds: list[ChangeKind] = []
        self.fails = False

    def __call__(self, _connection: Connection, changes: Sequence[Change]) -> None:
        if self.fails:
            raise StoreError("the disk is full", where="here", hint="make room")
        self.kinds += [change.kind for change in changes]


def count(database: Database) -> tuple[int, int]:
    """Return how many findings and requests are stored."""
    with database.read() as connection:
        of_findings = connection.execute(select(func.count()).select_from(findings)).scalar_one()
        of_rows = connection.execute(select(func.count()).select_from(request_rows)).scalar_one()
    return of_findings, of_rows


def offsets(database: Database) -> int:
    """Return how many messages are done, in all partitions."""
    with database.read() as connection:
        return sum(read_offsets(connection).values())


def test_findings_and_rows_are_recorded_with_their_offsets(database: Database) -> None:
    results, told = Results(), Told()
    results.send(*(found(f"f{pool}", 0, pool=pool) for pool in POOLS))
    results.send_rows(request("r1"), request("r2"))
    recorder = results.recorder(database, announce=told)
    recorder.turn(0)
    assert count(database) == (len(POOLS), 2)
    assert told.kinds == [ChangeKind.OPENED] * len(POOLS)
    assert offsets(database) == len(POOLS) + 1
    assert recorder.counts == {"new": len(POOLS), "updated": 0, "repeated": 0, "requests": 2}
    assert set(recorder.lag().values()) == {0}


def test_a_restart_goes_on_and_tells_nothing_again(store_settings: StoreSettings) -> None:
    results, told = Results(), Told()
    results.send(found("f1", 0))
    for expected in (1, 2):
        with closing(open_store(store_settings)) as database:
            recorder = results.recorder(database, announce=told)
            recorder.turn(0)
            recorder.turn(0)
            assert sum(recorder.counts.values()) == 1
            assert count(database) == (expected, 0)
        results.send(found("f2", 1))
    assert told.kinds == [ChangeKind.OPENED, ChangeKind.ONGOING]


def test_two_that_share_a_store_record_everything_once(database: Database) -> None:
    results, told = Results(), Told()
    one, other = (results.recorder(database, announce=told) for _ in range(2))
    results.send(found("f1", 0))
    one.turn(0)
    other.turn(0)
    results.send(found("f2", 1))
    other.turn(0)
    one.turn(0)
    assert count(database) == (2, 0)
    assert told.kinds == [ChangeKind.OPENED, ChangeKind.ONGOING]
    assert one.counts["new"] == other.counts["new"] == 1
    assert one.counts["repeated"] == other.counts["repeated"] == 0


def test_a_transaction_that_fails_leaves_nothing_and_is_done_again(database: Database) -> None:
    results, told = Results(), Told()
    results.send(found("f1", 0))
    results.send_rows(request("r1"))
    recorder = results.recorder(database, announce=told)
    told.fails = True
    with pytest.raises(StoreError, match="the disk is full"):
        recorder.turn(0)
    assert (count(database), offsets(database)) == ((0, 0), 0)
    told.fails = False
    recorder.turn(0)
    assert (count(database), offsets(database)) == ((1, 1), 2)
    assert told.kinds == [ChangeKind.OPENED]


HOSTILE = [
    (b"", "empty"),
    (b"\xff canary", "undecodable"),
    (b"[" * 100_000, "wrong_type"),
    (b'{"id": 1}', "wrong_type"),
    (b"x" * (2**20 + 1), "too_large"),
]


@pytest.mark.parametrize(("value", "reason"), HOSTILE, ids=lambda it: str(it)[:12])
def test_what_cannot_be_read_is_counted_and_passed(
    database: Database, value: bytes, reason: str
) -> None:
    results = Results()
    results.send_raw(Message(TOPICS.findings, value, key=b"a"))
    results.send(found("f1", 0))
    recorder = results.recorder(database)
    recorder.turn(0)
    assert recorder.refused == {(TOPICS.findings, reason): 1}
    assert count(database) == (1, 0)


@pytest.mark.parametrize(
    "bad",
    [
        found("no such id", 0),
        found("f", 0, rule="DROP"),
        found("f", 0, pool=""),
        found("f", 0, sink="t\0"),
        found("f", 0, explanation="x" * 5_000),
        found("f", 0, source="t" * 513),
        found("f", 0, observed_at_ms=2**60),
        found("f", 0, runtime={"a\0": "b"}),
    ],
    ids=str,
)
def test_a_finding_that_breaks_its_bounds_is_counted_and_passed(
    database: Database, bad: object
) -> None:
    results = Results()
    results.send(bad, found("good", 0))  # type: ignore[arg-type]
    recorder = results.recorder(database)
    recorder.turn(0)
    assert recorder.refused == {(TOPICS.findings, "out_of_bounds"): 1}
    assert count(database) == (1, 0)


def named(seed: int, chars: int) -> str:
    """Return a name of four bytes a character that PostgreSQL cannot make smaller."""
    draw = random.Random(seed)
    return "".join(chr(draw.randrange(0x20000, 0x2A000)) for _ in range(chars))


def test_names_that_no_index_takes_stop_nothing(database: Database) -> None:
    results = Results()
    results.send(found("long", 0, sink=named(1, 512), request=named(2, 89)), found("good", 0))
    results.send(found("fits", 0, sink=named(1, 512), request=named(2, 88)))
    results.send(found("engine", 0, pool=named(3, 512), source=named(4, 512)))
    results.send_rows(
        request(named(1, 400), tenant=named(2, 100), kv_pool=named(3, 101)),
        request("blast", tenant=named(1, 400), kv_pool=named(2, 100), engine=named(3, 101)),
        request(named(1, 400), tenant=named(2, 100), kv_pool=named(3, 100), engine=named(4, 400)),
    )
    recorder = results.recorder(database)
    recorder.turn(0)
    assert recorder.refused == {
        (TOPICS.findings, "out_of_bounds"): 1,
        (TOPICS.requests, "out_of_bounds"): 2,
    }
    assert count(database) == (3, 1)


def test_rows_that_cannot_be_read_are_counted_and_passed(database: Database) -> None:
    results = Results()
    results.send_raw(Message(TOPICS.requests, b"\xff canary", key=b"a"))
    results.send_rows(request("r1"), request("r\0"))
    recorder = results.recorder(database)
    recorder.turn(0)
    assert recorder.refused == {
        (TOPICS.requests, "wrong_type"): 1,
        (TOPICS.requests, "out_of_bounds"): 1,
    }
    assert count(database) == (0, 1)


def test_a_topic_that_was_made_anew_is_read_from_its_beginning(database: Database) -> None:
    before = Results()
    before.send(*(found(f"f{number}", 0) for number in range(3)))
    before.recorder(database).turn(0)
    after = Results()
    after.send(found("new", 0))
    recorder = after.recorder(database)
    recorder.turn(0)
    assert recorder.counts["new"] == 1
    assert count(database) == (4, 0)


def test_a_broker_of_this_process_is_read_whole(database: Database) -> None:
    for name in ("f1", "f2"):
        results = Results()
        results.send(found(name, 0))
        results.recorder(database, resumes=False).turn(0)
    assert count(database) == (2, 0)
    assert offsets(database) == 0


def test_quiet_incidents_are_resolved_and_told(database: Database) -> None:
    results, told = Results(), Told()
    now = [0]
    results.send(found("f1", 0))
    recorder = results.recorder(database, announce=told, now_ms=lambda: now[0])
    recorder.turn(0)
    recorder.resolve()
    now[0] = 20_000
    recorder.resolve()
    recorder.resolve()
    assert told.kinds == [ChangeKind.OPENED, ChangeKind.RESOLVED]
    with database.read() as connection:
        assert incident_rows.count_by_state(connection)[State.RESOLVED] == 1


def test_rows_of_one_request_are_put_together(database: Database) -> None:
    results = Results()
    answered = request(
        "r1", ended_at_ms=5, completion_tokens=7, status=200, flags=("prompt_unseen",)
    )
    asked = request("r1", prompt_tokens=9, flags=("response_unseen",))
    recorder = results.recorder(database)
    for row in (answered, asked, answered):
        results.send_rows(row)
        recorder.turn(0)
    with database.read() as connection:
        (one,) = requests_named(connection, "r1", limit=10)
    assert (one.prompt_tokens, one.completion_tokens, one.status, one.flags) == (9, 7, 200, ())
