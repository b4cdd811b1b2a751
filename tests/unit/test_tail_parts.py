"""The parts of following a log: runtime prefixes, pipes, FIFOs, checkpoints, what was had."""

import os
from pathlib import Path

import pytest

from detector.errors import InputError
from ingest.coverage import Coverage
from ingest.sources.base import RawRequest
from ingest.sources.bodies import MAX_BODIES, Bodies
from ingest.tail.checkpoint import CheckpointFile, HadRequest, LogMark
from ingest.tail.cri import RuntimeLines
from ingest.tail.had import HadRequests
from ingest.tail.identity import identity_of
from ingest.tail.pipe import PipeLog, open_fifo
from ingest.tail.siblings import FileMark

AT = b"2026-11-29T18:00:21.123456789Z"


def taken(*lines: bytes, limit: int = 1000) -> tuple[list[tuple[int, bytes]], RuntimeLines]:
    reader = RuntimeLines(coverage=Coverage(), max_line_bytes=limit)
    made = [line for one in enumerate(lines) if (line := reader.take(one)) is not None]
    return made, reader


def test_a_runtimes_prefix_is_taken_off_and_long_lines_are_joined() -> None:
    made, reader = taken(
        AT + b" stdout P [1, 2,",
        AT + b" stderr F warning",
        AT + b" stdout P  3,",
        AT + b" stdout F  4]",
        AT + b" stdout F next",
    )
    assert made == [(1, b"warning"), (0, b"[1, 2, 3, 4]"), (4, b"next")]
    assert reader.oldest_line() is None


def test_a_line_that_goes_on_is_still_needed() -> None:
    made, reader = taken(AT + b" stdout F one", AT + b" stdout P two")
    assert made == [(0, b"one")]
    assert reader.oldest_line() == 1


@pytest.mark.parametrize(
    "line",
    [
        b'{"timestamp": "2026-11-29T18:00:21"}',
        b"[2026-11-29 18:00:21] stdout F x",
        b"2026-11-29T18:00:21 stdout F x",
        b"",
    ],
)
def test_a_line_without_such_a_prefix_passes(line: bytes) -> None:
    assert taken(line)[0] == [(0, line)]


def test_a_joined_line_above_the_bound_is_counted() -> None:
    coverage = Coverage()
    reader = RuntimeLines(coverage=coverage, max_line_bytes=10)
    for at in range(5):
        assert reader.take((at, AT + b" stdout P 0123456")) is None
    assert reader.take((5, AT + b" stdout F end")) is None
    assert coverage.broken_by_reason == {"line_too_long": 1}


def test_a_pipe_ends_with_its_last_writer() -> None:
    read, write = os.pipe()
    pipe = PipeLog(read, name="-", coverage=Coverage(), ends=True)
    try:
        assert pipe.poll(0.0) == []
        os.write(write, b"one\ntwo\nthr")
        assert pipe.poll(0.0) == [(0, b"one"), (4, b"two")]
        os.write(write, b"ee")
        os.close(write)
        assert pipe.poll(0.0) == [(8, b"three")]
        assert pipe.is_over
        assert pipe.place(0) is None
    finally:
        os.close(read)


def test_what_is_discarded_leaves_whole_lines() -> None:
    read, write = os.pipe()
    pipe = PipeLog(read, name="-", coverage=Coverage(), ends=True)
    try:
        os.write(write, b"one\ntw")
        assert pipe.discard() == 6
        os.write(write, b"o\nthree\n")
        assert pipe.poll(0.0) == [(4, b"two"), (8, b"three")]
    finally:
        os.close(read)
        os.close(write)


def test_a_fifo_outlives_its_writers(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    pipe = open_fifo(path, coverage=Coverage())
    for word in (b"one", b"two"):
        with path.open("wb") as writer:
            writer.write(word)
            writer.flush()
            assert pipe.poll(0.0) == []
        assert [content for _, content in pipe.poll(0.0)] == [word]
        assert not pipe.is_over
    pipe.close()


def mark(name: str = "a.log", position: int = 7) -> LogMark:
    file = FileMark(identity_of(1, 2, b"head", bytes(16)), 5, 9)
    return LogMark(name, position, file, (HadRequest("r-1", 12),))


def test_a_checkpoint_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    first = CheckpointFile(str(path))
    assert first.logs == {}
    first.write({"a.log": mark()})
    first.close()
    assert path.stat().st_mode & 0o777 == 0o600
    second = CheckpointFile(str(path))
    assert (second.logs, second.salt) == ({"a.log": mark()}, first.salt)
    second.close()


def test_a_checkpoint_is_one_sidecars_own(tmp_path: Path) -> None:
    held = CheckpointFile(str(tmp_path / "checkpoint"))
    with pytest.raises(InputError, match="another process"):
        CheckpointFile(str(tmp_path / "checkpoint"))
    held.close()
    CheckpointFile(str(tmp_path / "checkpoint")).close()


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"version": 2, "salt": "", "logs": []}'])
def test_what_is_no_checkpoint_is_not_written_over(tmp_path: Path, content: str) -> None:
    path = tmp_path / "checkpoint"
    path.write_text(content)
    with pytest.raises(InputError, match="move it away"):
        CheckpointFile(str(path))
    assert path.read_text() == content


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"sidecar\.checkpoint_file"):
        CheckpointFile(str(tmp_path / "no" / "checkpoint"))


def raw(name: str, first: int, last: int) -> RawRequest:
    return RawRequest(request_id=name, started_at_ms=0, first_line=first, last_line=last)


def test_requests_across_a_place_are_not_sent_again() -> None:
    before = HadRequests()
    for one in (raw("whole", 0, 10), raw("across", 5, 30), raw("later", 25, 40)):
        before.add(one)
    across = before.across(20)
    assert across == (HadRequest("across", 30),)
    again = HadRequests(across, position=20)
    assert again.is_again(raw("across", 30, 30))
    assert not again.is_again(raw("across", 31, 50)), "another request of that id"
    assert not again.is_again(raw("later", 25, 40))
    assert again.across(25) == across, "a second crash must know it too"
    again.release(31)
    assert again.across(25) == ()
    assert not again.is_again(raw("across", 30, 30))


def test_a_body_is_needed_until_its_request_comes_or_its_time_is_over() -> None:
    bodies: Bodies[str] = Bodies(life_ms=60)
    bodies.put("a", "body a", line=3, now_ms=0)
    bodies.put("b", "body b", line=5, now_ms=50)
    assert bodies.oldest_line() == 3
    noted = bodies.claim("a")
    assert noted is not None
    assert (noted.body, noted.line) == ("body a", 3)
    assert bodies.oldest_line() == 5
    bodies.pass_time(110)
    assert bodies.oldest_line() == 5
    bodies.pass_time(111)
    assert bodies.oldest_line() is None
    assert bodies.claim("b") is not None, "it is still known"
    for number in range(MAX_BODIES):
        bodies.put(str(number), "", line=number, now_ms=0)
    assert bodies.claim("b") is None
