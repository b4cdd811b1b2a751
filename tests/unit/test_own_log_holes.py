"""A log of our own whose head is freed is still known: nothing of it is lost, freed or deleted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.growing_log import Follower, GrowingLog, pack, wide
from tests.unit.sidecars import Station
from tests.unit.test_sidecar_inputs import answer, sglang

HOLE = b"\0"
NEW = [b"new %d" % number for number in range(6)]
"""Longer together than what was freed."""


@pytest.fixture
def log(tmp_path: Path) -> Iterator[GrowingLog]:
    written = GrowingLog(tmp_path / "server.log")
    yield written
    written.close()


@pytest.fixture
def follower(log: GrowingLog) -> Iterator[Follower]:
    """Give one that has read three lines."""
    following = Follower(log.path, owned=True)
    log.write(wide(b"one") * 3)
    assert following.read() == [b"one"] * 3
    yield following
    following.log.close()


@pytest.fixture
def freed(log: GrowingLog, follower: Follower) -> Follower:
    """Give one that has read three lines and freed them."""
    follower.log.release(follower.log.next_at)
    assert log.path.read_bytes() == HOLE * len(wide(b"one") * 3)
    return follower


def write_all(log: GrowingLog, words: list[bytes]) -> None:
    for word in words:
        log.write(wide(word))


@pytest.mark.parametrize("is_rotated", [False, True])
def test_a_kill_between_the_first_hole_and_the_next_checkpoint_loses_nothing(
    log: GrowingLog, follower: Follower, *, is_rotated: bool
) -> None:
    at = follower.place()
    follower.log.release(follower.log.next_at)
    log.write(wide(b"two"))
    if is_rotated:
        log.rotate()
    log.write(wide(b"three"))
    follower.restart(at)
    assert follower.read() == [b"two", b"three"]
    assert not follower.coverage.broken_by_reason


def test_a_sidecar_that_is_killed_behind_its_first_hole_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    pairs = [
        sglang("received", f"r{number}", 2 * number) + answer(f"r{number}", 2 * number + 1)
        for number in range(4)
    ]
    log.write_text("".join(pairs[:2]))
    station = Station(tmp_path, str(log), format="sglang", own_logs=True)
    station.start()
    for _ in range(12):
        station.turns(1)
        if log.read_bytes().startswith(HOLE):
            break
    station.crash()
    assert log.read_bytes().startswith(HOLE)
    with log.open("a") as file:
        file.write("".join(pairs[2:]))
    running = station.start()
    station.turns(6)
    broken = dict(running.look().logs[0].broken)
    station.crash()
    assert {one.request_id for one in station.sequences()} == {"r0", "r1", "r2", "r3"}
    assert "file_gone" not in broken


def test_what_is_written_behind_a_truncation_is_not_freed(
    log: GrowingLog, follower: Follower
) -> None:
    log.copy_truncate()
    write_all(log, NEW)
    follower.log.release(follower.log.next_at)  # acknowledged only now
    assert follower.read() == NEW


def test_the_copy_of_a_freed_file_is_read_on(log: GrowingLog, freed: Follower) -> None:
    log.write(wide(b"two"))
    log.copy_truncate()
    log.write(wide(b"three"))
    assert freed.read() == [b"two", b"three"]
    assert not freed.coverage.broken_by_reason


def test_copies_of_freed_files_are_told_from_each_other(log: GrowingLog, freed: Follower) -> None:
    for number in range(4):
        log.write(wide(b"freed") * 8)  # more than a head
        assert freed.read() == [b"freed"] * 8
        freed.log.release(freed.log.next_at)
        log.write(wide(b"cut %d" % number))
        log.copy_truncate()
        log.write(wide(b"line %d" % number))
        assert freed.read() == [b"cut %d" % number, b"line %d" % number]
        freed.log.release(freed.log.next_at)
    assert not freed.coverage.broken_by_reason


@pytest.mark.parametrize("is_down", [False, True])
def test_a_freed_file_that_was_truncated_and_grew_beyond_the_hole_is_read_anew(
    log: GrowingLog, freed: Follower, *, is_down: bool
) -> None:
    at = freed.place()
    log.path.open("wb").close()
    write_all(log, NEW)
    if is_down:
        freed.restart(at)
    assert freed.read() == NEW
    assert freed.coverage.broken_by_reason == {"file_gone" if is_down else "truncated_unread": 1}


def test_an_inode_that_is_used_again_is_not_the_file_that_was_freed(
    log: GrowingLog, freed: Follower
) -> None:
    at = freed.place()
    log.path.open("wb").close()
    write_all(log, NEW)
    log.copy_truncate()
    write_all(log, NEW[::-1])
    freed.restart(at)
    assert freed.read() == NEW + NEW[::-1]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("is_down", [False, True])
def test_a_freed_file_that_is_packed_is_read_on(
    log: GrowingLog, freed: Follower, suffix: str, *, is_down: bool
) -> None:
    log.write(wide(b"two") + wide(b"three"))
    if not is_down:
        assert freed.read() == [b"two", b"three"]
    at = freed.place()
    pack(log.rotate(), suffix)
    log.write(wide(b"four"))
    if is_down:
        freed.restart(at)
    assert freed.read() == [*([b"two", b"three"] if is_down else []), b"four"]
    assert not freed.coverage.broken_by_reason


def test_a_rotated_file_that_holds_something_else_by_now_is_not_deleted(
    log: GrowingLog, follower: Follower
) -> None:
    rotated = log.rotate()
    log.write(wide(b"two"))
    assert follower.read() == [b"two"]
    rotated.write_bytes(wide(b"a copy to the same name"))
    follower.log.release(follower.log.next_at)
    assert rotated.exists()
    assert not follower.coverage.broken_by_reason
