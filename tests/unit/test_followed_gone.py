"""Files that are gone, overwritten or elsewhere when they are looked for: what is left is read."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.tail.followed import CLOCK_NS
from tests.unit.growing_log import Follower, GrowingLog, wide

HOUR_NS = 3600 * 10**9


@pytest.fixture
def log(tmp_path: Path) -> Iterator[GrowingLog]:
    written = GrowingLog(tmp_path / "server.log")
    yield written
    written.close()


@pytest.fixture
def follower(log: GrowingLog) -> Iterator[Follower]:
    """Give one that has read a line."""
    following = Follower(log.path)
    log.write(wide(b"one"))
    assert following.read() == [b"one"]
    yield following
    following.log.close()


def copy_over(log: GrowingLog) -> None:
    """Copy to the name that the last copy has and truncate, a tick of the clock later."""
    shutil.copyfile(log.path, log.path.with_name("server.log.1"))
    with log.path.open("r+b") as file:
        file.truncate(0)
    time.sleep(2 * CLOCK_NS / 1e9)


def rotate_to(log: GrowingLog, stamp: str) -> None:
    log.path.rename(log.path.with_name(f"{log.path.name}.{stamp}"))
    log.reopen()


@pytest.mark.parametrize("is_down", [False, True])
def test_the_last_of_two_copies_to_one_name_is_read(
    log: GrowingLog, follower: Follower, *, is_down: bool
) -> None:
    at = follower.place()
    log.write(wide(b"overwritten"))
    copy_over(log)
    log.write(wide(b"two"))
    copy_over(log)
    log.write(wide(b"three"))
    if is_down:
        follower.restart(at)
    assert follower.read() == [b"two", b"three"]
    assert follower.coverage.broken_by_reason == {"file_gone" if is_down else "truncated_unread": 1}


def test_a_checkpoint_behind_a_truncation_that_nobody_has_seen_knows_the_copies_since(
    log: GrowingLog, follower: Follower
) -> None:
    copy_over(log)
    log.write(wide(b"two"))
    copy_over(log)
    log.write(wide(b"three"))
    follower.restart()
    assert follower.read() == [b"two", b"three"]


@pytest.mark.parametrize("rotations", [0, 1, 2])
def test_a_log_that_was_rotated_before_it_was_seen_is_read_whole(
    tmp_path: Path, rotations: int
) -> None:
    (tmp_path / "server.log.20261128").write_bytes(wide(b"of another time"))
    time.sleep(2 * CLOCK_NS / 1e9)
    follower = Follower(tmp_path / "server.log")
    assert follower.read() == []
    log = GrowingLog(tmp_path / "server.log")
    for number in range(rotations):
        log.write(wide(b"%d" % number))
        log.rotate()
    log.write(wide(b"last"))
    assert follower.read(turns=24) == [*(b"%d" % number for number in range(rotations)), b"last"]
    assert not follower.coverage.broken_by_reason
    follower.log.close()
    log.close()


@pytest.mark.parametrize("is_down", [False, True])
def test_the_log_itself_is_read_though_the_clock_went_back(
    log: GrowingLog, follower: Follower, *, is_down: bool
) -> None:
    at = follower.place()
    log.rotate().unlink()
    log.write(wide(b"two"))
    status = log.path.stat()
    os.utime(log.path, ns=(status.st_atime_ns, status.st_mtime_ns - HOUR_NS))
    if is_down:
        follower.restart(at)
    assert follower.read() == [b"two"]


def test_a_log_that_is_moved_to_its_place_with_an_older_time_is_read(tmp_path: Path) -> None:
    prepared = tmp_path / "prepared"
    prepared.write_bytes(wide(b"one"))
    os.utime(prepared, ns=(0, time.time_ns() - HOUR_NS))
    follower = Follower(tmp_path / "server.log")
    assert follower.read() == []
    prepared.rename(tmp_path / "server.log")
    assert follower.read() == [b"one"]
    follower.log.close()


def test_files_that_were_deleted_before_they_were_seen_are_counted_once(
    log: GrowingLog, follower: Follower
) -> None:
    for number in range(3):
        log.rotate()
        log.write(wide(b"%d" % number))
    for rotated in log.path.parent.glob("server.log.*"):
        rotated.unlink()
    assert follower.read() == [b"2"]
    assert follower.coverage.broken_by_reason == {"file_gone": 1}


def test_a_file_that_is_moved_elsewhere_is_not_called_gone(
    log: GrowingLog, follower: Follower, tmp_path: Path
) -> None:
    (tmp_path / "old").mkdir()
    log.rotate().rename(tmp_path / "old" / "server.log.1")
    log.write(wide(b"two"))
    assert follower.read() == [b"two"]
    assert not follower.coverage.broken_by_reason


@pytest.mark.parametrize("is_down", [False, True])
def test_the_rotated_files_of_a_link_lie_beside_what_it_leads_to(
    tmp_path: Path, *, is_down: bool
) -> None:
    (tmp_path / "pods").mkdir()
    (tmp_path / "containers").mkdir()
    log = GrowingLog(tmp_path / "pods" / "0.log")
    link = tmp_path / "containers" / "engine.log"
    link.symlink_to(log.path)
    follower = Follower(link)
    log.write(wide(b"one"))
    assert follower.read() == [b"one"]
    for stamp, word in (("20261129-180021", b"two"), ("20261129-180022", b"three")):
        log.write(wide(word))
        rotate_to(log, stamp)
    log.write(wide(b"four"))
    if is_down:
        follower.restart()
    assert follower.read(turns=24) == [b"two", b"three", b"four"]
    assert not follower.coverage.broken_by_reason
    follower.log.close()
    log.close()


@pytest.mark.parametrize("is_down", [False, True])
def test_a_link_to_the_newest_of_the_files_beside_it_is_followed(
    tmp_path: Path, *, is_down: bool
) -> None:
    link = tmp_path / "server.log"
    days = [tmp_path / f"server.log.2026112{day}" for day in range(3)]
    days[0].write_bytes(wide(b"one"))
    link.symlink_to(days[0])
    follower = Follower(link)
    assert follower.read() == [b"one"]
    for day, word in zip(days[1:], (b"two", b"three"), strict=True):
        day.write_bytes(wide(word))
        link.unlink()
        link.symlink_to(day)
    if is_down:
        follower.restart()
    assert follower.read(turns=24) == [b"two", b"three"]
    assert not follower.coverage.broken_by_reason
    follower.log.close()


def test_nothing_is_deleted_beside_what_a_link_leads_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    log = GrowingLog(tmp_path / "elsewhere" / "precious")
    link = tmp_path / "server.log"
    link.symlink_to(log.path)
    follower = Follower(link, owned=True)
    log.write(wide(b"one"))
    assert follower.read() == [b"one"]
    rotated = log.rotate()
    log.write(wide(b"two"))
    assert follower.read() == [b"two"]
    follower.log.release(follower.log.next_at)
    assert rotated.read_bytes() == wide(b"one")
    follower.log.close()
    log.close()
