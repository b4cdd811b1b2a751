"""Rotations at moments when a follower looks elsewhere: nothing of a copy is lost."""

import time
from pathlib import Path
from typing import Any

import pytest

from ingest.tail.followed import CLOCK_NS
from ingest.tail.opened import open_log
from tests.unit.growing_log import Follower, GrowingLog, wide


@pytest.fixture
def log(tmp_path: Path) -> GrowingLog:
    return GrowingLog(tmp_path / "server.log")


@pytest.fixture
def follower(log: GrowingLog) -> Follower:
    """Give one that has seen the log empty, a tick of the clock ago."""
    following = Follower(log.path)
    assert following.read() == []
    time.sleep(2 * CLOCK_NS / 1e9)
    return following


@pytest.fixture(autouse=True)
def _closed(log: GrowingLog, follower: Follower) -> Any:
    yield
    log.close()
    follower.log.close()


def lines(*words: str) -> list[bytes]:
    return [word.encode() for word in words]


def test_a_copy_that_is_renamed_between_look_and_opening_is_read(
    log: GrowingLog, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write(wide(b"one"))
    copy = log.copy_truncate()
    log.write(wide(b"two"))

    def renamed_meanwhile(path: Path, **given: Any) -> Any:
        if path == copy and copy.exists():
            copy.rename(copy.with_name("server.log.2"))
        return open_log(path, **given)

    monkeypatch.setattr("ingest.tail.followed.open_log", renamed_meanwhile)
    assert follower.read() == lines("one", "two")


def test_a_copy_of_a_file_that_is_empty_again_and_renamed_is_read(
    log: GrowingLog, follower: Follower
) -> None:
    log.write(wide(b"one"))
    log.copy_truncate()
    log.rotate()
    log.write(wide(b"two"))
    assert follower.read() == lines("one", "two")


def test_a_copy_of_a_file_that_was_empty_at_the_checkpoint_is_read(
    log: GrowingLog, follower: Follower
) -> None:
    log.write(wide(b"one"))
    log.copy_truncate()
    follower.restart()
    log.write(wide(b"two"))
    assert follower.read() == lines("one", "two")
