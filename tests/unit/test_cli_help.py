"""What `--help` shows: every example on a line of its own, piped and on a terminal."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from detector.cli.app import app
from detector.cli.examples import MARK

PROGRAM = (sys.executable, "-c", "from detector.cli.app import main; main()")
WITHOUT_EXAMPLES = {("version",)}


def commands() -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the words that call a command, and its description."""
    pending: list[tuple[tuple[str, ...], Any]] = [((), typer.main.get_command(app))]
    while pending:
        words, command = pending.pop()
        inner = getattr(command, "commands", None) or {}
        pending += [((*words, word), below) for word, below in inner.items()]
        yield words, command.help or ""


COMMANDS = list(commands())


def examples(description: str) -> list[str]:
    return [line.strip() for line in description.partition(MARK)[2].splitlines() if line.strip()]


@pytest.mark.parametrize("columns", ["40", "80"])
@pytest.mark.parametrize(("words", "description"), COMMANDS, ids=lambda value: str(value)[:30])
def test_examples_stay_as_they_are(words: tuple[str, ...], description: str, columns: str) -> None:
    done = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": columns})
    assert done.exit_code == 0
    assert r"\b" not in done.stdout
    assert "\b" not in done.stdout
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert set(examples(description)) <= set(lines)


@pytest.mark.parametrize("words", sorted({words[:-1] for words, _ in COMMANDS if words}))
def test_no_line_of_a_list_of_commands_is_cut(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"})
    _, _, listed = done.stdout.partition("Commands:\n")
    assert listed
    assert not [line for line in listed.splitlines() if line.endswith("...")]


def test_every_command_has_an_example() -> None:
    groups = {words[:-1] for words, _ in COMMANDS}
    lacking = {words for words, text in COMMANDS if words not in groups and not examples(text)}
    assert lacking == WITHOUT_EXAMPLES


def test_examples_on_a_terminal() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    with subprocess.Popen(
        [*PROGRAM, "replay", "--help"], stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        written = b""
        while chunk := _read(ours):
            written += chunk
    os.close(ours)
    assert process.returncode == 0
    assert b"\b" not in written
    assert rb"\b" not in written
    lines = [line.strip() for line in written.decode().splitlines()]
    shown = "bleedwatch replay server.log --history server.log.1 --config bleedwatch.yaml"
    assert shown in lines


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""
