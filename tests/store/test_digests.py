"""Digests are kept apart from findings, of every version those that say most, and go with them."""

import json
from typing import Final

import msgspec
import pytest
from sqlalchemy import text

from detector.finding import Digests, Finding
from exporters.store import digests
from exporters.store.database import Database
from exporters.store.digests import FindingDigests
from exporters.store.erasure import erase_tenant
from exporters.store.recording import record_findings
from exporters.store.verdicts import Verdict, give_verdict
from tests.store.made import SETTINGS, found
from tests.store.topics import Results

KEY: Final = "0123abcd"


def digested(name: str, count: int, *, at_s: float = 0, key: str = KEY) -> Finding:
    made = Digests(key=key, shingles=bytes(range(8 * count)))
    return msgspec.structs.replace(found(name, at_s), digests=made)


def record(database: Database, *findings: Finding) -> None:
    with database.write() as connection:
        record_findings(connection, findings, SETTINGS, now_ms=0)


def kept(database: Database, name: str) -> FindingDigests | None:
    with database.read() as connection:
        return digests.digests_of(connection, name)


def test_they_are_apart_from_the_finding(database: Database) -> None:
    record(database, digested("f", 2), found("g", 1))
    assert kept(database, "f") == FindingDigests(finding="f", key=KEY, shingles=bytes(range(16)))
    assert kept(database, "g") is None
    with database.read() as connection:
        bodies = connection.scalars(text("SELECT body FROM findings")).all()
    assert {json.loads(body)["digests"] for body in bodies} == {None}


@pytest.mark.parametrize("order", [(2, 3), (3, 2), (3, 3)])
def test_of_versions_those_that_are_most_are_kept(
    database: Database, order: tuple[int, int]
) -> None:
    for count in order:
        record(database, digested("f", count))
    one = kept(database, "f")
    assert one is not None
    assert len(one.shingles) == 24


def test_they_are_erased_with_the_tenant(database: Database) -> None:
    record(database, digested("f", 2))
    with database.write() as connection:
        erase_tenant(connection, "globex")
    with database.read() as connection:
        assert connection.scalar(text("SELECT count(*) FROM finding_digests")) == 0


def test_false_positives_are_listed_page_by_page(database: Database) -> None:
    record(database, *(digested(f"f{n}", 1, at_s=n) for n in range(5)), found("bare", 9))
    with database.write() as connection:
        for name in ("f0", "f1", "f3", "bare"):
            give_verdict(connection, name, Verdict.FALSE_POSITIVE, by="walt", now_ms=0)
        give_verdict(connection, "f2", Verdict.CONFIRMED, by="walt", now_ms=0)
    with database.read() as connection:
        first = digests.false_positives(connection, limit=2)
        rest = digests.false_positives(connection, limit=2, after=first[-1].finding)
    assert [one.finding for one in (*first, *rest)] == ["f0", "f1", "f3"]


@pytest.mark.parametrize(
    "bad",
    [
        Digests(key=KEY, shingles=b""),
        Digests(key=KEY, shingles=bytes(9)),
        Digests(key=KEY, shingles=bytes(8 * 4_097)),
        Digests(key="<b>", shingles=bytes(8)),
    ],
)
def test_digests_that_no_worker_makes_are_refused(database: Database, bad: Digests) -> None:
    results = Results()
    recorder = results.recorder(database)
    results.send(msgspec.structs.replace(found("f", 0), digests=bad), digested("g", 2))
    recorder.turn(0)
    assert [reason for _, reason in recorder.refused] == ["out_of_bounds"]
    assert kept(database, "g") is not None
