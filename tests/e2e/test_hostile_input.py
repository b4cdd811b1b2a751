"""Input that is missing, broken, hostile or huge: an error or a count, never a traceback."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import zstandard

from detector.errors import InputError
from ingest.coverage import Coverage
from ingest.sources.lines import open_lines
from tests.e2e.program import Capture, call, replayed, run
from tests.e2e.traffic import WRITERS, pairs, row, write_config, write_jsonl

CUT_EVERY = 997
NOBODY = 65_534
PAIRS = 5
HUGE_TOKENS = 2_000_000


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(tmp_path / "config.yaml", detection={"commonness": {"learning_ms": 0}})


def written(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def test_files_that_cannot_be_read_are_named(tmp_path: Path, config: Path) -> None:
    """As processes: this is the first thing that goes wrong for a user."""
    empty, binary = tmp_path / "empty.log", tmp_path / "binary.log"
    empty.touch()
    binary.write_bytes(Random(1).randbytes(1 << 20))
    paths = [tmp_path / "absent.log", tmp_path, empty, binary]
    if (unreadable := Path("/proc/self/mem")).exists():
        paths.append(unreadable)
    for path in paths:
        done = run("replay", path, "--config", config)
        assert (done.returncode, done.stdout) == (2, b"")
        error, *rest = done.stderr.decode().splitlines()
        assert error.startswith(f"error: {path}: ")
        assert len(rest) <= 1


def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "log.jsonl", pairs(1))
    path.chmod(0)
    us = os.geteuid()
    os.seteuid(us or NOBODY)  # root may read every file
    try:
        with pytest.raises(InputError, match=r"[Pp]ermission denied"):
            open_lines(path, coverage=Coverage())
    finally:
        os.seteuid(us)


def test_empty_stdin_is_an_error() -> None:
    done = run("replay", "-")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"error: -: ")


def test_one_bad_file_among_good_ones_stops_before_any_result(tmp_path: Path) -> None:
    good = write_jsonl(tmp_path / "log.jsonl", pairs(1))
    done = run("replay", good, tmp_path / "absent", "--save", tmp_path / "saved")
    assert (done.returncode, done.stdout) == (2, b"")
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "zstd"])
@pytest.mark.parametrize("form", WRITERS)
def test_a_file_cut_anywhere(
    tmp_path: Path, config: Path, capsys: Capture, form: str, packed: bool
) -> None:
    whole = WRITERS[form](tmp_path / f"whole.{form}.log", pairs(PAIRS)).read_bytes()
    cut = tmp_path / f"cut.{form}.log"
    data = zstandard.compress(whole) if packed else whole
    most = replayed(capsys, config, _put(cut, data))
    assert len(most["findings"]) == PAIRS
    requests = 0
    for end in range(0, len(data), CUT_EVERY // (4 if packed else 1)):
        _put(cut, data[:end])
        code, out, err = call(
            capsys, "replay", cut, "--config", config, "--fail-on", "never", "-o", "json"
        )
        if code == 2:  # nothing in it tells what it is, or no response is whole
            assert f"error: {cut}: " in err or "error: nothing was judged: " in err
            continue
        document = json.loads(out)
        assert len(document["findings"]) <= PAIRS
        assert document["requests"] >= requests or packed
        requests = document["requests"]
    assert packed or requests >= 2 * PAIRS - 2


def _put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("form", ["jsonl", "vllm", "sglang"])
def test_garbage_in_the_middle_is_counted(
    tmp_path: Path, config: Path, capsys: Capture, form: str
) -> None:
    path = WRITERS[form](tmp_path / f"log.{form}.log", pairs(PAIRS))
    lines = path.read_bytes().split(b"\n")
    noise = Random(2).randbytes(4000)
    path.write_bytes(b"\n".join([*lines[:-1], noise, b"{" * 3000, b"\0" * 5000, *lines[:0], b""]))
    document = replayed(capsys, config, path)
    assert len(document["findings"]) == PAIRS
    assert document["requests"] == 2 * PAIRS


def test_a_record_of_2_million_tokens(tmp_path: Path, config: Path, capsys: Capture) -> None:
    traffic = [row(one) for one in pairs(2)]
    random = Random(8)
    huge = [random.randrange(1_000, 150_000) for _ in range(HUGE_TOKENS)]
    traffic[1]["response_ids"] = huge[:-500] + traffic[1]["response_ids"] + huge[-500:]
    path = written(tmp_path / "log.jsonl", traffic)
    document = replayed(capsys, config, path)
    assert document["requests"] == 4
    sinks = {one["sink"]["request_id"] for one in document["findings"]}
    assert sinks == {traffic[1]["request_id"], traffic[3]["request_id"]}


def test_a_record_above_the_limits_is_counted(
    tmp_path: Path, config: Path, capsys: Capture
) -> None:
    path = written(tmp_path / "log.jsonl", [row(one) for one in pairs(1)])
    with path.open("ab") as file:
        file.write(b'{"request_id": "x", "ts": 1, "tenant": "t", "prompt_ids": [')
        file.write(b"1000, " * 11_500_000 + b"1000]}\n")
    document = replayed(capsys, config, path)
    assert document["coverage"]["broken_by_reason"] == {"line_too_long": 1}
    assert len(document["findings"]) == 1


ODD: dict[str, list[Any]] = {
    "no tokens": [[], []],
    "one token": [[5000], [5000]],
    "a negative id": [[5000, -1], [5000]],
    "an id over 2**31": [[5000], [2**31 + 5]],
    "an id over 2**63": [[2**64 + 1], [5000]],
    "a boolean": [[True], [5000]],
    "null": [None, None],
}


@pytest.mark.parametrize("name", ODD)
def test_odd_ids_are_taken_or_counted(
    tmp_path: Path, config: Path, capsys: Capture, name: str
) -> None:
    traffic = [row(one) for one in pairs(1)]
    prompt, response = ODD[name]
    traffic.append(
        {**traffic[0], "request_id": "odd", "prompt_ids": prompt, "response_ids": response}
    )
    document = replayed(capsys, config, written(tmp_path / "log.jsonl", traffic))
    assert len(document["findings"]) == 1
    broken = sum(document["coverage"]["broken_by_reason"].values())
    assert broken == (name.startswith(("a ", "an ")))


@pytest.mark.parametrize(("lines", "said"), [(1, "1 broken entry ("), (2, "2 broken entries (")])
def test_nothing_but_broken_lines_is_an_error(
    tmp_path: Path, capsys: Capture, lines: int, said: str
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("{broken\n" * lines)
    code, out, err = call(capsys, "replay", path, "--format", "jsonl")
    assert (code, out) == (2, "")
    assert f"no request could be read: {said}" in err
