"""Splits shell lines into simple commands, each with the line it begins on."""

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t]+|\\\n)
    |(?P<comment>\#[^\n]*)
    |(?P<redirect>\d?[<>]>?(?:&\d)?)
    |(?P<end>&&|\|\||[;&|()\n])
    |(?P<word>(?:'[^']*'|"(?:\\.|[^"\\])*"|\$\([^()]*\)|\\.|[^\s'"\\;&|()<>])+)
    """,
    re.VERBOSE,
)

_INNER = re.compile(r"\$\(([^()]*)\)")

_RESERVED = {"!", "while", "until", "do", "done", "if", "then", "fi"}
"""Words of the shell that a command may follow."""

_VARIABLE = re.compile(r"[A-Z_]+=")

_OTHER_PROGRAM = "--"
"""Behind it, `kubectl exec` names a program that runs elsewhere."""


class Command(NamedTuple):
    """One program with its arguments, as the shell would hand them over."""

    line: int
    words: tuple[str, ...]
    variables: tuple[str, ...] = ()
    """Assignments before it, such as A=1."""


def commands_of(text: str, first_line: int) -> Iterator[Command]:
    """Yield the commands of shell lines, of which the first is line `first_line` of its file.

    What stands in $( ) is a command as well; where output goes is left out. Raises ValueError
    where a quote is left open.
    """
    words: list[tuple[int, str]] = []
    at, is_file = 0, False
    while at < len(text):
        line = first_line + text.count("\n", 0, at)
        found = _TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"line {line}: no shell can read {text[at : at + 20]!r}")
        kind, token, at = found.lastgroup, found[0], found.end()
        if kind == "end":
            yield from _simple(words)
            words = []
        elif kind == "word":
            for inner in _INNER.findall(token):
                yield from commands_of(inner, line)
            words += [] if is_file else [(line, "".join(shlex.split(token)))]
        if kind != "space":
            is_file = kind == "redirect" and "&" not in token
    yield from _simple(words)


def _simple(words: list[tuple[int, str]]) -> Iterator[Command]:
    """Yield the command that the words between two separators are, if any."""
    while words and words[0][1] in _RESERVED:
        words = words[1:]
    if not words:
        return
    bare = [word for _, word in words]
    count = next((n for n, word in enumerate(bare) if not _VARIABLE.match(word)), len(bare))
    end = bare.index(_OTHER_PROGRAM) if _OTHER_PROGRAM in bare else len(bare)
    if count < end:
        yield Command(words[count][0], tuple(bare[count:end]), tuple(bare[:count]))
    yield from _simple(words[end + 1 :])
