"""The commands that the documents tell their readers to type, with the place of each."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.content.shell_words import Command, commands_of
from tests.content.tree import ROOT, name

DOCUMENTS = (
    ROOT / "README.md",
    ROOT / "README.ja.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)

SHOWN = re.compile(
    r".*──"  # a picture
    r"|SEVERITY  |report  +scenario  "  # a table
    r"|\{\"|\[\d{4}-|\(APIServer "  # lines of logs
    r"|# nginx\n",
    re.DOTALL,
)
"""How a block that only shows something begins; other blocks of a shell are typed."""

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

_SHELLS = {"", "bash", "console", "sh"}

_MENTION = re.compile(r"`(make [^`]+|[^`\n]*\.venv/bin/bleedwatch [^`]+)`")

_PROMPT = "$ "
"""A block with prompts also shows what is answered."""


class Block(NamedTuple):
    """The text of one fenced block that is typed, and the line of the document it begins on."""

    path: Path
    line: int
    text: str


class Typed(NamedTuple):
    """One command and where it stands, such as docs/cli/logs.md:44."""

    place: str
    command: Command

    @property
    def program(self) -> str:
        """The name of the program, without its folder."""
        return self.command.words[0].rpartition("/")[2]

    def __str__(self) -> str:
        """Say where it stands, for a message or the name of a test."""
        return f"{self.place} {' '.join(self.command.words[:3])}"


def blocks(path: Path) -> Iterator[Block]:
    """Yield the blocks of a document whose lines are typed into a shell."""
    text = path.read_text(encoding="utf-8")
    for found in FENCE.finditer(text):
        if found[1] in _SHELLS and not SHOWN.match(found[2]):
            yield Block(path, _line(text, found.start(2)), _typed(found[2]))


def mentions(path: Path) -> Iterator[Block]:
    """Yield the commands that the sentences of a document hold."""
    text = path.read_text(encoding="utf-8")
    for found in _MENTION.finditer(text):
        yield Block(path, _line(text, found.start()), found[1])


@cache
def typed() -> tuple[Typed, ...]:
    """Return the commands of all documents."""
    return tuple(
        Typed(f"{name(path)}:{command.line}", command)
        for path in DOCUMENTS
        for block in (*blocks(path), *mentions(path))
        for command in commands_of(block.text, block.line)
    )


def typed_of(program: str) -> list[Typed]:
    """Return the commands of all documents that run `program`."""
    return [one for one in typed() if one.program == program]


def _line(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _typed(text: str) -> str:
    """Blank what a program answers, where a block has prompts; lines keep their numbers."""
    lines = text.splitlines()
    if not any(line.startswith(_PROMPT) for line in lines):
        return text
    kept, goes_on = [], False
    for line in lines:
        is_typed = goes_on or line.startswith(_PROMPT)
        kept.append(line.removeprefix(_PROMPT) if is_typed else "")
        goes_on = is_typed and line.endswith("\\")
    return "\n".join(kept)
