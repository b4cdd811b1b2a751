"""Lines behind a hole, and lines that rotations have cut: each is told from what is beside it."""

from pathlib import Path

import pytest

from ingest.coverage import Coverage
from ingest.tail.cri import RuntimeLines
from ingest.tail.splitter import Line, Splitter, is_record
from tests.unit.growing_log import Follower, GrowingLog, wide

RECORD = b'{"request_id": "r", "ts": 1}'
ENGINE = b"[2026-11-29 18:00:21] said"
AT = b"2026-11-29T18:00:21.123456789Z"
RUNTIME = AT + b" stdout F " + RECORD


def split(*files: bytes, limit: int = 1_000) -> tuple[list[Line], Splitter, Coverage]:
    """Feed one file after the other."""
    coverage = Coverage()
    splitter = Splitter(0, coverage=coverage, max_line_bytes=limit)
    lines: list[Line] = []
    for number, content in enumerate(files):
        if number:
            splitter.seam()
        lines += splitter.feed(content)
    return lines, splitter, coverage


def test_a_line_behind_a_hole_begins_where_it_was_written() -> None:
    lines, splitter, _ = split(bytes(100) + b"one\n" + bytes(10) + b"two\nhal")
    assert lines == [(100, b"one"), (114, b"two")]
    assert splitter.next_at == 118
    assert splitter.feed(b"f\n") == [(118, b"half")]


def test_a_hole_is_no_line_however_long_it_is() -> None:
    lines, splitter, coverage = split(limit=10)
    for _ in range(5):
        assert splitter.feed(bytes(9)) == []
        assert not splitter.has_rest
    assert splitter.feed(b"\0one\n") == [(46, b"one")]
    assert not lines
    assert not coverage.broken_by_reason


def test_nul_bytes_inside_a_line_are_of_the_line() -> None:
    _, splitter, _ = split(b"a\0b")
    assert splitter.feed(b"\0c\n") == [(0, b"a\0b\0c")]


def test_a_freed_log_is_read_from_behind_its_hole_without_a_checkpoint(tmp_path: Path) -> None:
    log = GrowingLog(tmp_path / "server.log")
    follower = Follower(log.path, owned=True)
    log.write(wide(b"one") * 3)
    assert follower.read() == [b"one"] * 3
    follower.log.release(follower.log.next_at)
    follower.log.close()
    log.write(wide(b"two") + wide(b"three"))
    again = Follower(log.path, owned=True)
    # a file system without holes has truncated the log, which leaves nothing in front
    assert again.read() == [b"two", b"three"]
    again.log.close()
    log.close()


@pytest.mark.parametrize("record", [RECORD, ENGINE, RUNTIME])
def test_half_a_line_at_the_end_of_a_file_costs_no_record_of_the_next(record: bytes) -> None:
    half = record[:-5]
    lines, _, _ = split(half, record + b"\n")
    assert lines == [(0, half), (len(half), record)]


@pytest.mark.parametrize("record", [RECORD, ENGINE, RUNTIME])
def test_a_record_that_goes_through_files_is_put_together(record: bytes) -> None:
    lines, _, _ = split(record[:8], record[8:9], record[9:] + b"\n", RECORD + b"\n")
    assert lines == [(0, record), (len(record) + 1, RECORD)]


@pytest.mark.parametrize("record", [RECORD, ENGINE, RUNTIME])
def test_a_record_in_two_files_behind_half_a_line_is_whole(record: bytes) -> None:
    half = b'{"request_id": "dead", "t'
    lines, _, _ = split(half, record[:-4], record[-4:] + b"\n")
    assert lines == [(0, half), (len(half), record)]


def test_each_of_several_halves_ends_where_the_next_record_begins() -> None:
    half, other = b'{"request_id": "dead', ENGINE[:-1]
    lines, splitter, _ = split(half, other, RUNTIME + b"\nne")
    assert lines == [(0, half), (len(half), other), (len(half) + len(other), RUNTIME)]
    assert splitter.feed(b"xt\n")[0][1] == b"next"


@pytest.mark.parametrize(
    "line",
    [
        RUNTIME,
        AT + b" stderr P part",
        AT + b" stdout F:tag ",
        b"2026-11-29T18:00:21+01:00 stdout F x",
        AT + b" stdout F",
        AT + b" stdin F x",
        AT + b" stdout X x",
        b"2026-11-29T18:00:21 stdout F x",
        b" " + AT + b" stdout F x",
    ],
)
def test_a_runtimes_line_is_one_whose_prefix_is_taken_off(line: bytes) -> None:
    taken = RuntimeLines(coverage=Coverage()).take((0, line))
    assert is_record(line) == (taken != (0, line))
