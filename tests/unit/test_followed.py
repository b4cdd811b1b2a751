"""A log is followed through every rotation: no line is lost, none is read twice, none is torn."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from ingest.coverage import Coverage
from ingest.tail.splitter import Splitter
from tests.unit.growing_log import Follower, GrowingLog, pack, wide

ROTATIONS: dict[str, Callable[[GrowingLog], Path]] = {
    "rename": GrowingLog.rotate,
    "copytruncate": GrowingLog.copy_truncate,
}

rotations = pytest.mark.parametrize("rotate", ROTATIONS.values(), ids=ROTATIONS)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[GrowingLog]:
    written = GrowingLog(tmp_path / "server.log")
    yield written
    written.close()


@pytest.fixture
def follower(log: GrowingLog) -> Iterator[Follower]:
    following = Follower(log.path)
    yield following
    following.log.close()


def test_lines_come_as_they_are_written(log: GrowingLog, follower: Follower) -> None:
    assert follower.read() == []
    log.write(b"one\ntw")
    assert follower.read() == [b"one"]
    log.write(b"o\n\nthree\r\n")
    assert follower.read() == [b"two", b"", b"three\r"]
    assert list(follower.lines) == [0, 4, 8, 9]


def test_a_log_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "late.log")
    assert follower.read() == []
    (tmp_path / "late.log").write_bytes(b"one\n")
    assert follower.read() == [b"one"]


@rotations
def test_a_rotation_loses_nothing(
    log: GrowingLog, follower: Follower, rotate: Callable[[GrowingLog], Path]
) -> None:
    log.write(b"one\n")
    assert follower.read() == [b"one"]
    log.write(b"two\n")
    rotate(log)
    log.write(b"three\n")
    assert follower.read() == [b"two", b"three"]
    assert not follower.coverage.broken_by_reason


@rotations
@pytest.mark.parametrize("read_before", [True, False])
def test_a_line_that_a_rotation_cuts_is_whole(
    log: GrowingLog, follower: Follower, rotate: Callable[[GrowingLog], Path], *, read_before: bool
) -> None:
    log.write(b"one\n")
    assert follower.read() == [b"one"]
    log.write(b"[1, 2, ")
    assert not read_before or follower.read() == []
    rotate(log)
    log.write(b"3, 4]\nthree\n")
    assert follower.read() == [b"[1, 2, 3, 4]", b"three"]
    assert list(follower.lines) == [0, 4, 17]


RECORDS = [
    b'{"timestamp": "2026-11-29T18:00:21", "event": "request.received"}',
    b"[2026-11-29 18:00:21] INFO: ready",
    b"(APIServer pid=1) DEBUG 11-29 17:29:56 [request_logger.py:65] Received request a",
    b'{"request_id": "r", "ts": 1}',
]


@rotations
@pytest.mark.parametrize("record", RECORDS)
def test_half_a_line_of_an_engine_that_died_does_not_spoil_the_next(
    log: GrowingLog, follower: Follower, rotate: Callable[[GrowingLog], Path], record: bytes
) -> None:
    log.write(b"one\n" + record[:25])
    assert follower.read() == [b"one"]
    rotate(log)
    log.write(record + b"\n")
    assert follower.read() == [record[:25], record]


@rotations
@pytest.mark.parametrize("record", RECORDS[:1] + RECORDS[3:])
def test_a_cut_record_is_put_together_wherever_it_was_cut(
    tmp_path: Path, rotate: Callable[[GrowingLog], Path], record: bytes
) -> None:
    for at in range(1, len(record)):
        log = GrowingLog(tmp_path / f"{at}.log")
        log.write(record[:at])
        follower = Follower(log.path)
        follower.read()
        rotate(log)
        log.write(record[at:] + b"\n")
        assert follower.read() == [record]
        follower.log.close()
        log.close()


def test_the_old_file_is_read_while_its_writer_has_not_changed_over(
    log: GrowingLog, follower: Follower
) -> None:
    log.write(b"one\n")
    log.rename()
    log.path.touch()
    assert follower.read() == [b"one"]
    log.write(b"two\n")
    assert follower.read() == [b"two"]
    log.reopen()
    log.write(b"three\n")
    assert follower.read() == [b"three"]


@pytest.mark.parametrize("opened_with", [b"", wide(b"two")])
def test_a_new_file_that_is_emptied_before_its_turn_is_read_from_its_copy(
    log: GrowingLog, follower: Follower, opened_with: bytes
) -> None:
    log.write(wide(b"nought"))
    assert follower.read() == [b"nought"]
    log.write(wide(b"one"))
    log.rotate()
    log.write(opened_with)
    assert follower.read(turns=2) == [b"one"]  # the old file may still be written to
    log.write(wide(b"two")[len(opened_with) :])
    log.copy_truncate()
    if not opened_with:
        log.write(wide(b"three"))  # nothing else tells that it is not empty still
    assert follower.read() == [b"two", b"three"][: 1 if opened_with else 2]


@rotations
def test_several_rotations_between_two_looks_are_read_in_order(
    log: GrowingLog, follower: Follower, rotate: Callable[[GrowingLog], Path]
) -> None:
    log.write(b"one\n")
    assert follower.read() == [b"one"]
    for number in range(3):
        log.write(b"%d\n" % number)
        rotate(log)
    log.write(b"last\n")
    assert follower.read(turns=40) == [b"0", b"1", b"2", b"last"]


@rotations
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_what_was_rotated_while_nobody_followed_is_read(
    log: GrowingLog, follower: Follower, rotate: Callable[[GrowingLog], Path], packed: str
) -> None:
    log.write(wide(b"one") + wide(b"two") + b"thr")
    assert follower.read() == [b"one", b"two"]
    log.write(wide(b"ee") + wide(b"four"))
    first = rotate(log)
    if packed:
        pack(first, packed)
    log.write(wide(b"five"))
    second = rotate(log)
    if packed:
        pack(second, packed)
    log.write(wide(b"six"))
    follower.restart()
    assert follower.read(turns=40) == [b"three", b"four", b"five", b"six"]
    follower.restart()
    log.write(wide(b"seven"))
    assert follower.read() == [b"seven"]
    assert not follower.coverage.broken_by_reason


def test_kubelets_names_are_read_in_the_order_of_their_times(
    log: GrowingLog, follower: Follower
) -> None:
    log.write(wide(b"one"))
    follower.read()
    for number, stamp in enumerate(["20261129-180021", "20261129-190021", "20261130-000001"]):
        log.path.rename(log.path.with_name(f"server.log.{stamp}"))
        log.reopen()
        log.write(wide(b"%d" % number))
    pack(log.path.with_name("server.log.20261129-190021"))
    follower.restart()
    assert follower.read(turns=40) == [b"0", b"1", b"2"]


def test_a_file_that_is_gone_is_counted_and_reading_goes_on(
    log: GrowingLog, follower: Follower
) -> None:
    log.write(wide(b"one"))
    follower.read()
    at = follower.place()
    log.rotate().unlink()
    log.write(wide(b"two"))
    follower.restart(at)
    assert follower.read() == [b"two"]
    assert follower.coverage.broken_by_reason == {"file_gone": 1}


def test_a_truncation_without_a_copy_is_counted(log: GrowingLog, follower: Follower) -> None:
    log.write(b"one\n")
    follower.read()
    log.copy_truncate().unlink()
    log.write(b"two and more than before\n")
    assert follower.read() == [b"two and more than before"]
    assert follower.coverage.broken_by_reason == {"truncated_unread": 1}


def test_a_late_write_is_counted(log: GrowingLog, follower: Follower) -> None:
    log.write(b"one\n")
    log.rename()
    log.path.write_bytes(b"two\n")
    assert follower.read() == [b"one", b"two"]
    log.write(b"late\n")
    follower.log.release(follower.log.next_at)
    assert follower.coverage.broken_by_reason == {"late_write": 1}


def test_a_line_above_the_bound_is_counted() -> None:

    coverage = Coverage()
    splitter = Splitter(0, coverage=coverage, max_line_bytes=10)
    assert splitter.feed(b"short\n" + b"x" * 9) == [(0, b"short")]
    assert splitter.feed(b"yy") == []
    assert splitter.feed(b"zzz\nnext\n") == [(21, b"next")]
    assert coverage.broken_by_reason == {"line_too_long": 1}


@pytest.mark.parametrize("seed", range(12))
def test_whatever_happens_every_line_is_read_at_its_place(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    log = GrowingLog(tmp_path / "server.log")
    follower = Follower(log.path)
    written = bytearray(wide(b"begin"))
    log.write(bytes(written))
    follower.read()
    places = [follower.place()]
    for step in range(120):
        line = _line(chance, step)
        cut = chance.randrange(len(line) + 1)
        event = chance.randrange(12)
        if event in (1, 2):
            follower.read(turns=12)  # what was never looked at has no head to know its copy by
        log.write(line[:cut])
        match event:
            case 0:
                log.rotate()
            case 1 | 2:
                log.copy_truncate()
            case 3:
                follower.restart(chance.choice(places))
            case 4:
                oldest = log.path.with_name("server.log.1")
                if oldest.exists():
                    pack(oldest)
        rest = line[cut:] + _line(chance, step)  # a file begins like no other within two lines
        log.write(rest)
        written += line[:cut] + rest
        if chance.random() < 0.6:
            follower.read(turns=chance.randrange(1, 9))
            places.append(follower.place())
    follower.read(turns=400)
    expected = dict(_positions(bytes(written)))
    assert follower.lines == expected
    assert not follower.coverage.broken_by_reason
    follower.log.close()
    log.close()


def _line(chance: Random, number: int) -> bytes:
    return b"%s %d %s\n" % (
        chance.randbytes(12).hex().encode(),
        number,
        b"x" * chance.randrange(400),
    )


def _positions(content: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    for line in content.splitlines(keepends=True):
        yield at, line[:-1]
        at += len(line)
