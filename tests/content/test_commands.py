"""Every command of the documents is one: the program, make and the shell take it as it stands."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer

from detector.cli.app import app
from detector.cli.examples import MARK
from detector.config.load import load_settings
from tests.content.app_commands import leaves
from tests.content.doc_commands import DOCUMENTS, FENCE, Typed, typed, typed_of
from tests.content.shell_words import commands_of
from tests.content.tree import ROOT, name
from tests.e2e.program import Capture

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

OURS = {"bleedwatch", "make"}

FOREIGN = {
    *("curl", "docker", "helm", "kubectl", "openssl", "vllm"),
    *("base64", "chmod", "cut", "echo", "grep", "rm", "sleep", "tail"),
    *(".", "export", "kill", "set", "umask", "wait"),
}
"""Programs of others, and what the shell itself does, that the documents use."""


@pytest.fixture(scope="module")
def idle() -> tuple[Any, list[dict[str, Any]]]:
    """Return the command line with commands that only note what they were given."""
    given: list[dict[str, Any]] = []
    program = typer.main.get_command(app)
    pending: list[Any] = [program]
    while pending:
        command = pending.pop()
        pending += getattr(command, "commands", {}).values()
        if not hasattr(command, "commands"):
            command.callback = lambda **parameters: given.append(parameters)
    return program, given


def examples() -> list[Typed]:
    """Return the commands that `--help` shows as examples."""
    return [
        Typed(f"help of {' '.join(path)}", one)
        for path, command in leaves()
        for one in commands_of((command.help or "").partition(MARK)[2], 1)
        if one.words[0] == "bleedwatch"
    ]


@pytest.mark.parametrize("one", [*typed_of("bleedwatch"), *examples()], ids=str)
def test_the_program_takes_it(
    one: Typed, idle: tuple[Any, list[dict[str, Any]]], capsys: Capture
) -> None:
    program, given = idle
    given.clear()
    with pytest.raises(SystemExit) as ended:
        program.main(list(one.command.words[1:]))
    told = capsys.readouterr().err
    assert ended.value.code == 0, f"{one.place}: {told}"
    (parameters,) = given
    load_settings(environment={}, assignments=parameters.get("assignments") or ())


@pytest.mark.parametrize("one", typed_of("make"), ids=str)
def test_make_knows_the_target_and_its_variables(one: Typed) -> None:
    target, *given = one.command.words[1:]
    names = [word.partition("=")[0] for word in (*one.command.variables, *given)]
    done = subprocess.run(
        ["make", "--dry-run", target, *(f"{each}=given-{each}" for each in names)],
        cwd=ROOT, env={**os.environ, "MAKEFLAGS": ""}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{one.place}: {done.stderr}"
    assert f".PHONY: {target}\n" in MAKEFILE or "Nothing to be done" not in done.stdout, one.place
    unread = [each for each in names if f"given-{each}" not in done.stdout]
    assert not unread, f"{one.place}: `make {target}` reads no {unread}"


def test_every_other_program_is_known() -> None:
    others = {one.program: one.place for one in typed() if one.program not in OURS}
    assert others.keys() == FOREIGN, others


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_every_block_is_seen(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert 2 * len(FENCE.findall(text)) == len(re.findall(r"^ *(?:```|~~~)", text, re.MULTILINE))


def test_many_commands_are_seen() -> None:
    """A document whose blocks are written in another way would not be tested at all."""
    assert len(typed_of("bleedwatch")) >= 90
    assert len(examples()) >= 30
    assert len(typed_of("make")) >= 60
    assert len(typed_of("kubectl")) >= 20
