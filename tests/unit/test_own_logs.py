"""A log that is the sidecar's own gives back what is acknowledged, and nothing of it is lost."""

import os
from pathlib import Path

from ingest.tail.hygiene import punch_hole, truncate_read
from tests.e2e.traffic import pairs, write_sglang
from tests.unit.growing_log import Follower, GrowingLog, wide
from tests.unit.sidecars import Station

BLOCK = 64 * 1024


def test_a_hole_takes_the_content_and_leaves_the_size(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * BLOCK + b"end")
    descriptor = os.open(path, os.O_RDWR)
    try:
        assert punch_hole(descriptor, BLOCK)
    finally:
        os.close(descriptor)
    assert path.read_bytes() == bytes(BLOCK) + b"end"
    assert path.stat().st_blocks * 512 < BLOCK


def test_a_truncation_waits_until_all_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one\ntwo\n")
    descriptor = os.open(path, os.O_RDWR)
    try:
        assert not truncate_read(descriptor, 4)
        assert path.read_bytes() == b"one\ntwo\n"
        assert truncate_read(descriptor, 8)
        assert path.read_bytes() == b""
    finally:
        os.close(descriptor)


def test_what_is_released_is_freed_and_reading_goes_on(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "server.log")
    follower = Follower(log.path, owned=True)
    log.write(wide(b"one") + wide(b"two"))
    assert follower.read() == [b"one", b"two"]
    follower.log.release(follower.log.next_at)
    assert log.path.read_bytes().strip(b"\0") == b""
    log.write(wide(b"three"))
    assert follower.read() == [b"three"]
    follower.restart()
    log.write(wide(b"four"))
    assert follower.read() == [b"four"]
    moved = log.rotate()
    log.write(wide(b"five"))
    assert follower.read() == [b"five"]
    assert moved.exists()
    follower.log.release(follower.log.next_at)
    assert not moved.exists()
    follower.log.close()
    log.close()


def test_a_sidecar_that_owns_its_logs_leaves_no_prompt_behind(tmp_path: Path) -> None:
    whole = write_sglang(tmp_path / "whole", pairs(5))
    log = GrowingLog(tmp_path / "engine.log")
    station = Station(tmp_path, str(log.path), own_logs=True)
    station.start()
    station.turns()
    log.write(whole.read_bytes())
    station.turns(6)
    station.crash()
    station.start()
    station.turns(6)
    station.stop()
    log.close()
    assert set(station.told()) == station.expected(whole)
    assert b"input_ids" not in log.path.read_bytes()
