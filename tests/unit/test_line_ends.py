"""Whether the lines of a vLLM log end with CR LF: all records are read, bodies are none of them."""

import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.coverage import Coverage
from ingest.sources.line_ends import MOST_HELD_BYTES, as_they_come, end_with_cr
from ingest.sources.lines import Lines
from tests.unit.test_service import ENDING_WITH_CR, OUTPUT, PROMPT, STARTED, TEXT, read

SECONDS = 10


def at(second: int, writer: str = "", line: int = 55) -> str:
    """Return the prefix of a record of that second."""
    return f"{writer}INFO 03-01 10:00:{second:02} [request_logger.py:{line}] "


def records(prefix: str, requests: int, name: str = "a") -> list[str]:
    """Return the records of as many requests, all under one prefix."""
    lines = [prefix + each for each in (PROMPT, OUTPUT, TEXT)]
    return [
        line.replace("chatcmpl-a", f"chatcmpl-{name}{n}") for n in range(requests) for line in lines
    ]


def marked(lines: list[str]) -> list[str]:
    return [line + "\r" for line in lines]


def piped(text: str) -> tuple[list[bytes], Coverage]:
    """Return the lines of a pipe without their CR LF."""
    coverage = Coverage()
    lines = Lines(io.BytesIO(text.encode()), coverage=coverage)
    return [content for _, content in as_they_come(lines, lines, coverage)], coverage


def test_a_busy_second_hides_no_record(tmp_path: Path) -> None:
    lines = [one for second in range(SECONDS) for one in records(at(second), 30, f"{second}-")]
    made, coverage = read(tmp_path / "server.log", "\r\n".join(lines) + "\r\n")
    assert len(made) == 30 * SECONDS
    assert all((one.prompt_ids, one.response_ids) == ([5], [7]) for one in made)
    assert not coverage.broken_by_reason


TWO = [
    line
    for n in range(12)
    for server in (1, 2)
    for line in records(at(0, f"(APIServer_{server} pid={server}) "), 1, f"x{n}-{server}-")
]
"""Bodies of two API servers that hold what looks like records."""

BROKEN_OFF = [at(0) + "Request a JSON body: {", at(0) + "x", at(1) + "Request b JSON body: {"]
BROKEN_OFF += records(at(1), 25)


@pytest.mark.parametrize(
    ("body", "after"),
    [
        (TWO, []),
        (TWO, [at(0, "(APIServer_1 pid=1) ") + "end", at(0, "(APIServer_2 pid=2) ") + "end"]),
        (BROKEN_OFF, [at(1) + "}"]),
        (marked(BROKEN_OFF)[:2] * 50 + BROKEN_OFF, [at(1) + "}", at(2) + "honest"]),
    ],
    ids=["two, never ended", "two", "one behind a message broken off", "beyond the first lines"],
)
def test_a_log_that_begins_inside_bodies_takes_none_of_them_for_records(
    tmp_path: Path, body: list[str], after: list[str]
) -> None:
    made, coverage = read(tmp_path / "server.log.1", "\n".join(marked(body) + after) + "\n")
    assert not made
    assert coverage.broken_by_reason.keys() == {"truncated_message"}


@pytest.mark.parametrize("end", ["", "\r", "\r\n"])
def test_a_short_pipe_with_cr_lf_loses_its_cr(end: str) -> None:
    lines, _ = piped(f"a banner\n{STARTED}\r\n{ENDING_WITH_CR}{end}")
    assert lines == f"a banner\n{STARTED}\n".encode().splitlines() + [
        line.encode() for line in ENDING_WITH_CR.split("\r\n")
    ]


def test_the_marks_of_a_pipe_stay() -> None:
    lines = [*marked(BROKEN_OFF), at(1) + "}", *records(at(2), 2)]
    assert piped("\n".join(lines) + "\n") == ([line.encode() for line in lines], Coverage())


def test_cr_lf_that_turns_out_wrong_is_counted_and_marks_are_marks_from_there_on() -> None:
    early = [one for second in range(4) for one in records(at(second), 1)]
    late = [at(5) + "}", *marked(records(at(6), 2)), at(6) + "}", *marked(records(at(7), 1))]
    lines, coverage = piped("\n".join(marked(early) + late) + "\n")
    assert lines == [line.encode() for line in early + late]
    assert coverage.broken_by_reason == {"line_ends_changed": 1}


@pytest.mark.parametrize(
    "first",
    [
        b"a banner",
        b'{"asctime": "2026-03-01 10:00:00,1", "name": "vllm.x", "message": "Started"}',
        (at(0) + "Started").encode(),
    ],
)
def test_a_line_of_a_pipe_that_leaves_nothing_open_waits_for_no_other(first: bytes) -> None:
    given_lines = iter([(1, first)])
    log = Lines(io.BytesIO(), coverage=Coverage())
    assert next(as_they_come(given_lines, log, Coverage())) == (1, first)


def test_a_file_of_json_records_is_not_read_to_its_end_to_tell() -> None:
    record = b'{"asctime": "2026-03-01 10:00:01,000", "name": "vllm", "message": "m"}'
    lines = iter(enumerate([b"a banner", record, record, record]))
    assert not end_with_cr(lines, Lines(io.BytesIO(), coverage=Coverage()))
    assert len(list(lines)) == 2


def test_json_records_with_cr_wait_for_no_other() -> None:
    coverage = Coverage()
    lines = iter(enumerate([b'{"asctime": "2026-03-01 10:00:01,000"}\r'] * 3))
    read_on = as_they_come(lines, Lines(io.BytesIO(), coverage=coverage), coverage)
    assert next(read_on)
    assert len(list(lines)) == 2


def test_what_a_pipe_holds_is_bounded() -> None:
    """A message without an end comes through once it is longer than any that is put together."""
    taken = 0

    def unended() -> Iterator[tuple[int, bytes]]:
        nonlocal taken
        for taken in range(1, 40):
            yield taken, at(0).encode() + bytes(2**20) + b"\r"

    log = Lines(io.BytesIO(), coverage=Coverage())
    assert all(len(line) > 2**20 for _, line in islice(as_they_come(unended(), log, Coverage()), 9))
    assert taken <= MOST_HELD_BYTES // 2**20 + 1


def is_cr_lf(text: str) -> bool:
    lines = Lines(io.BytesIO(text.encode()), coverage=Coverage())
    return end_with_cr(lines, lines)


messages = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from("abc"), st.integers(1, 4)), min_size=1, max_size=12
)
"""Second, writer and number of lines of each."""


@given(messages, st.integers(0, 60))
def test_one_whole_record_keeps_every_file_from_being_taken_for_cr_lf(
    made: list[tuple[int, str, int]], begin: int
) -> None:
    """Wherever it begins, and whatever it breaks off."""
    lines = [
        at(second, f"{writer} ") + text + ("\r" if text != "x" * size else "")
        for second, writer, size in made
        for text in ("x" * n for n in range(1, size + 1))
    ]
    cut = [*lines[begin % len(lines) :], at(4, "a ") + "honest"]
    assert not is_cr_lf("\n".join(cut) + "\n")


@given(messages, st.integers(0, len("cut off")))
def test_two_prefixes_of_one_writer_tell_cr_lf_wherever_the_file_is_cut(
    made: list[tuple[int, str, int]], cut: int
) -> None:
    lines = [at(second, f"{writer} ") + "x" * size for second, writer, size in made]
    text = "\r\n".join([*lines, at(5, "a "), at(6, "a "), at(7, "a ") + "cut off"])
    assert is_cr_lf(text[: len(text) - cut])
