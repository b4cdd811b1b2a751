"""Words of command lines and of small shell scripts, each with the line it stands in.

Not a shell: what a variable holds is known only where the same text sets it, and what could hold
flags and is not known is told.
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from detector.errors import InputError

_SEPARATORS: Final = frozenset({";", ";;", "&&", "||", "|", "&", "|&", "(", ")", "{", "}"})
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:\{(\w+)(?::?-([^}]{0,200}))?\}|\((\w+)\)|(\w+))")
_STARTERS: Final = frozenset(
    {"exec", "nohup", "env", "time", "sudo", "then", "do", "else", "export"}
)

MAX_SCRIPT: Final = 65_536
"""Characters of a script: what starts an engine has some hundred."""

MAX_EXPANDED: Final = 65_536
"""Characters that variables may become in one script; beyond, they stay as they are written."""

LINES_AHEAD: Final = 200
"""How many lines below the last one a word is looked for: comments may stand between."""

_MARKS: Final = {
    "": re.compile(r"\\.|['\"]|(?<![^\s;&|])#"),
    "'": re.compile(r"'"),
    '"': re.compile(r'\\.|"'),
}
"""What matters outside of quotes, and inside each kind."""


_COMMENT: Final = re.compile(r"""(\\.|'[^']*'|"(?:\\.|[^"\\])*")|(?<![^\s;&|])#[^\n]*""", re.DOTALL)
"""What a shell leaves out; what is quoted, its first group, is not looked into."""


class Word(NamedTuple):
    """A word of a command, as the shell would hand it on; `where` is FILE:LINE."""

    text: str
    where: str


class Command(NamedTuple):
    """One command of a script, and the variables that are set when it runs: read them at once."""

    words: tuple[Word, ...]
    environment: Mapping[str, str | None]


class Expansion:
    """Puts variables into the words of one script, up to a number of characters in all."""

    def __init__(self) -> None:
        self._left = MAX_EXPANDED

    def expanded(self, text: str, environment: Mapping[str, str | None]) -> str:
        """Return a text with the variables put in whose values are known; others stay."""

        def value(found: re.Match[str]) -> str:
            name = found[1] or found[3] or found[4]
            known = environment.get(name)
            if known is None and name not in environment and found[2] is not None:
                known = found[2]
            if known is None or len(known) > self._left:
                return found[0]
            self._left -= len(known)
            return known

        return _VARIABLE.sub(value, text)


def is_variable(text: str) -> bool:
    """Tell whether a word is nothing but a variable: it may stand for any number of flags."""
    return text.startswith("$") and re.fullmatch(r"\$[{(]?[\w@\[\]*:+-]+[})]?", text) is not None


def commands(
    script: str, file: str, line: int, environment: Mapping[str, str | None]
) -> Iterator[Command]:
    """Yield the commands of a script whose first line has a number, in order.

    Raises InputError for one that is too long to be the start of an engine.
    """
    if len(script) > MAX_SCRIPT:
        raise InputError(
            f"a script of more than {MAX_SCRIPT:,} characters",
            where=f"{file}:{line}" if line else file,
            hint="give the command that starts the engine, alone or with --args",
        )
    known, expansion = dict(environment), Expansion()
    for first, text in _logical_lines(script):
        words: list[Word] = []
        for token, at in _tokens(text, first):
            if token in _SEPARATORS:
                yield from _command(words, known)
                words = []
            else:
                place = Word(expansion.expanded(token, known), f"{file}:{line + at}")
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
    begin = 0
    for word in words:
        found = _ASSIGNMENT.fullmatch(word.text)
        if found is not None:
            name, more, value = found.groups()
            before = known.get(name, "") if more else ""
            is_known = before is not None and "$(" not in value and "`" not in value
            known[name] = f"{before}{value}" if is_known else None
        elif word.text not in _STARTERS:
            break
        begin += 1
    if begin < len(words):
        yield Command(tuple(words[begin:]), known)


def _logical_lines(script: str) -> Iterator[tuple[int, str]]:
    """Yield lines joined where a backslash or an open quote goes on, with their first number."""
    first, joined, quote = 0, list[str](), ""
    for number, line in enumerate(script.split("\n")):
        if not joined:
            first = number
        is_continued = line.rstrip().endswith("\\")
        joined.append(line.rstrip()[:-1] if is_continued else line)
        quote = quote_after(joined[-1], quote)
        if not is_continued and not quote:
            yield first, "\n".join(joined)
            joined = []
    if joined:
        yield first, "\n".join(joined)


def quote_after(line: str, quote: str) -> str:
    """Return the quote that is open at the end of a line, empty without one, as shlex has it.

    `quote` is the one that is open before it.
    """
    at = 0
    while (found := _MARKS[quote].search(line, at)) is not None:
        at = found.end()
        if found[0] == "#":
            return ""
        if not found[0].startswith("\\"):
            quote = "" if quote else found[0]
    return quote


def _lexed(text: str) -> list[str]:
    text = _COMMENT.sub(lambda found: found[1] or "", text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|")
    lexer.commenters = ""
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
        ahead = range(at, min(at + LINES_AHEAD, len(lines)))
        at = next((n for n in ahead if head and head in lines[n]), at)
        yield token, first + at
        at = min(at + token.count("\n"), len(lines) - 1)
