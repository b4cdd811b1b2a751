"""Tables and machine forms, on a terminal and piped."""

import json
import os
import pty
import subprocess
import sys

import pytest
import yaml

from detector.cli.figures import show_figures
from detector.cli.output import Format, write_rows
from detector.cli.terminal import printable, progress

ROWS = [{"name": "a", "count": 12_000, "share": 0.25}, {"name": "b é", "count": 3, "share": None}]


def test_table(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    write_rows(ROWS, Format.TABLE, columns=("name", "count"))
    assert capsys.readouterr().out == "NAME  COUNT\na     12,000\nb é        3\n".replace(
        "COUNT\n", " COUNT\n"
    )


def test_machine_forms(capsys: pytest.CaptureFixture[str]) -> None:
    write_rows(ROWS, Format.JSON, columns=())
    assert json.loads(capsys.readouterr().out) == ROWS
    write_rows(ROWS, Format.JSONL, columns=())
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == ROWS
    write_rows(ROWS, Format.YAML, columns=())
    out = capsys.readouterr().out
    assert yaml.safe_load(out) == ROWS
    assert out.isascii()


def test_figures_of_every_shape(capsys: pytest.CaptureFixture[str]) -> None:
    figures = {
        "requests": 5_928,
        "recall_by_length": {"16": 0.99, "32": 1.0},
        "clean": {"dev": {"low": 19, "high": 0}, "cold": {"low": 28, "high": 0}},
        "rows": [{"name": "core", "speed": 4.5}],
    }
    show_figures(figures)
    out = capsys.readouterr().out
    for said in ("5,928", "RECALL BY LENGTH", "0.99", "LOW", "cold", "core", "4.5"):
        assert said in out


@pytest.mark.parametrize(
    ("raw", "safe"),
    [
        ("plain", "plain"),
        ("東京 é", "東京 é"),
        ("\x1b[31m", "\\x1b[31m"),
        ("a\nb\x9bc", "a\\nb\\x9bc"),
        ("\u202egnp\u200b\ud800", "\\u202egnp\\u200b\\ud800"),
    ],
)
def test_printable(raw: str, safe: str) -> None:
    assert printable(raw) == safe


def test_no_progress_bar_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("reading") as report:
        assert report is None
    assert capsys.readouterr().err == ""


SHOWN = """
from detector.cli.output import Format, write_rows
from detector.cli.terminal import progress
with progress("reading") as report:
    report(0.5, "half")
write_rows([{"name": "a"}], Format.TABLE, columns=("name",))
"""


@pytest.mark.parametrize(("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_only_on_a_terminal(variables: dict[str, str], coloured: bool) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    environment |= {"TERM": "xterm-256color", **variables}
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SHOWN], stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    written = b""
    while chunk := _read(ours):
        written += chunk
    os.close(ours)
    assert process.wait() == 0
    assert b"half" in written
    assert (b"\x1b[1mNAME" in written) == coloured or not coloured
    assert (b"\x1b[3" in written) == coloured


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""
