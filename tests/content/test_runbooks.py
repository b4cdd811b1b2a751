"""Every rule has a runbook; the commands, flags and settings that runbooks name exist."""

import re
from collections.abc import Iterator

import pytest
from typer.main import get_command

from detector.cli.app import app
from detector.config.catalog import dotted, every_setting
from detector.config.root import Settings
from detector.rules.catalog import RULES
from detector.rules.runbook import Runbook, runbooks

COMMAND = re.compile(r"`bleedwatch ([^`]+)`")
SETTING = re.compile(r"`([a-z]+(?:\.[a-z_]+)+)")

SETTINGS = {dotted(one.path) for one in every_setting(Settings)}


def _texts(book: Runbook) -> Iterator[str]:
    yield from (book.meaning, book.impact)
    for steps in (book.diagnosis, book.containment, book.blast_radius, book.repair):
        yield from steps
    yield from (*book.notify, *book.false_alarms)


def unknown(words: list[str]) -> list[str]:
    """Return the commands and flags of a command line that do not exist."""
    command = get_command(app)
    while words and (inner := getattr(command, "commands", None)):
        word, *words = words
        if word not in inner:
            return [word]
        command = inner[word]
    flags = {opt for param in command.params for opt in param.opts}
    return [word for word in words if word.startswith("-") and word not in flags]


def test_every_rule_has_a_runbook() -> None:
    assert set(RULES) <= set(runbooks())


@pytest.mark.parametrize("name", sorted(runbooks()))
def test_what_a_runbook_names_exists(name: str) -> None:
    text = "\n".join(_texts(runbooks()[name]))
    lines = COMMAND.findall(text)
    assert {line: bad for line in lines if (bad := unknown(line.split()))} == {}
    named = set(SETTING.findall(text))
    assert {one for one in named if not any(path.startswith(one) for path in SETTINGS)} == set()


def test_what_does_not_exist_is_noticed() -> None:
    assert unknown(["outputs", "diary"]) == ["diary"]
    assert unknown(["audit", "--blok", "B"]) == ["--blok"]
    assert unknown(["audit", "--block", "B"]) == []


@pytest.mark.parametrize("name", sorted(runbooks()))
def test_a_runbook_saves_evidence_before_it_clears_and_restarts(name: str) -> None:
    steps = [step.lower() for step in runbooks()[name].containment]
    restart = [at for at, step in enumerate(steps) if "only then restart" in step]
    for at in restart:
        (stop,) = [i for i, step in enumerate(steps) if "stop traffic to the pool" in step]
        (save,) = [i for i, step in enumerate(steps) if "save the evidence" in step]
        assert stop < save < at
