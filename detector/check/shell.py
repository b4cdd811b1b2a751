"""Words of command lines and of small shell scripts, each with the line it stands in.

Not a shell: what a variable holds is known only where the same text sets it, and what could hold
flags and is not known is told.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

_SEPARATORS: Final = frozenset({";", ";;", "&&", "||", "|", "&", "|&", "(", ")", "{", "}"})
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|\((\w+)\)|(\w+))")
_STARTERS: Final = frozenset(
    {"exec", "nohup", "env", "time", "sudo", "then", "do", "else", "export"}
)


class Word(NamedTuple):
    """A word of a command, as the shell would hand it on; `where` is FILE:LINE."""

    text: str
    where: str


class Command(NamedTuple):
    """One command of a script, and the variables that are set when it runs."""

    words: tuple[Word, ...]
    environment: Mapping[str, str | None]


def expanded(text: str, environment: Mapping[str, str | None]) -> str:
    """Return a text with the variables put in whose values are known; others stay."""

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[3] or found[4]
        known = environment.get(name)
        if known is None and name not in environment and found[2] is not None:
            known = found[2]
        return found[0] if known is None else known

    return _VARIABLE.sub(value, text)


def is_variable(text: str) -> bool:
    """Tell whether a word is nothing but a variable: it may stand for any number of flags."""
    return text.startswith("$") and re.fullmatch(r"\$\{?[\w@\[\]*:+-]+\}?", text) is not None


def commands(
    script: str, file: str, line: int, environment: Mapping[str, str | None]
) -> Iterator[Command]:
    """Yield the commands of a script whose first line has a number, in order."""
    known = dict(environment)
    for first, text in _logical_lines(script):
        words: list[Word] = []
        for token, at in _tokens(text, first):
            if token in _SEPARATORS:
                yield from _command(words, known)
                words = []
            else:
                place = Word(expanded(token, known), f"{file}:{line + at}")
                words += _split(place, token)
        yield from _command(words, known)


def _split(word: Word, token: str) -> list[Word]:
    """A variable without quotes becomes as many words as it holds."""
    if is_variable(token) and word.text != token:
        try:
            return [Word(text, word.where) for text in shlex.split(word.text)]
        except ValueError:
            return [word]
    return [word]


def _command(words: list[Word], known: dict[str, str | None]) -> Iterator[Command]:
    """Take the assignments before a command in, and yield what is left of it."""
    while words and (words[0].text in _STARTERS or _ASSIGNMENT.fullmatch(words[0].text)):
        found = _ASSIGNMENT.fullmatch(words[0].text)
        if found is not None:
            known[found[1]] = None if "$(" in found[2] or "`" in found[2] else found[2]
        words = words[1:]
    if words:
        yield Command(tuple(words), dict(known))


def _logical_lines(script: str) -> Iterator[tuple[int, str]]:
    """Yield lines joined where a backslash or an open quote goes on, with their first number."""
    first, joined = 0, ""
    for number, line in enumerate(script.split("\n")):
        if not joined:
            first = number
        joined += line
        if line.rstrip().endswith("\\"):
            joined = joined.rstrip()[:-1] + "\n"
        elif _is_open(joined):
            joined += "\n"
        else:
            yield first, joined
            joined = ""
    if joined:
        yield first, joined


def _is_open(text: str) -> bool:
    try:
        _lexed(text)
    except ValueError:
        return True
    return False


def _lexed(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|")
    lexer.whitespace_split = True
    return list(lexer)


def _tokens(text: str, first: int) -> Iterator[tuple[str, int]]:
    """Yield the tokens of a logical line with the number of the line each is found in."""
    try:
        tokens = _lexed(text)
    except ValueError:
        return
    lines = text.split("\n")
    at = 0
    for token in tokens:
        head = token.split("\n")[0].split("=")[0][:40]
        later = (n for n in range(at, len(lines)) if head and head in lines[n])
        at = next(later, at)
        yield token, first + at
