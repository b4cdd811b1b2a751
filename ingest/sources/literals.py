"""Reads Python reprs out of log lines, evaluating nothing: ids, strings, dicts, dataclasses.

Linear time, bounded depth. Errors carry no part of what was read.
"""

import re
from typing import Any, NoReturn

import msgspec

MAX_DEPTH = 32
"""Engines nest about six levels; deeper input is not theirs."""

MAX_UNESCAPED_CHARS = 4096
"""Longer strings are prompt or answer text, which nobody reads: their escapes stay as they are."""

_STRING = re.compile(
    r"""b?(?:'((?:[^'\\]++|\\.)*+)'|"((?:[^"\\]++|\\.)*+)")""",
    re.DOTALL,
)
_FLAT_INTS = re.compile(r"\[[\d, -]*+\]")
_ATOM = re.compile(r"<[^<>]{0,200}>|[\w.+\-]+")
_KEYWORD = re.compile(r"(\w+)=")
_ESCAPE = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8}|.)", re.DOTALL)
_GAP = " ... "
_CONSTANTS: dict[str, Any] = {"None": None, "True": True, "False": False}
_NAMED = {"n": "\n", "r": "\r", "t": "\t"}
_INTS = msgspec.json.Decoder(list[int])


class LiteralError(ValueError):
    """The text is no literal that engines write. Says nothing about its content."""

    def __init__(self) -> None:
        super().__init__("not a literal")


class _Cut:
    """Stands for a string that the engine shortened to "head ... tail"."""

    def __repr__(self) -> str:
        return "CUT"


CUT = _Cut()


def parse_ids(text: str) -> list[int]:
    """Read "[1, 2, 3]"; raises LiteralError for anything else."""
    try:
        return _INTS.decode(text.encode())
    except (msgspec.DecodeError, UnicodeEncodeError):
        _fail()


def skip_string(text: str, at: int) -> tuple[int | None, int]:
    """Measure the string repr (or None) at `at`: (characters or None, position after it)."""
    if text.startswith("None", at):
        return None, at + 4
    found = _STRING.match(text, at)
    if found is None:
        _fail()
    body = found[1] if found[1] is not None else found[2]
    chars = len(_ESCAPE.sub("x", body)) if "\\" in body else len(body)
    return chars, found.end()


def parse(text: str, at: int = 0, depth: int = 0) -> tuple[Any, int]:
    """Read the value at `at`: (value, position after it).

    Calls such as `Name(a=1)` become dicts of their keywords, unknown names become strings, tuples
    become lists. A shortened list gets "..." at the gap, as in SGLang's JSON; a shortened string
    becomes CUT. Raises LiteralError.
    """
    if depth > MAX_DEPTH or at >= len(text):
        _fail()
    opener = text[at]
    flat = _FLAT_INTS.match(text, at) if opener == "[" else None
    value: Any
    if flat is not None:
        value, end = parse_ids(flat[0]), flat.end()
    elif opener in "[(":
        value, end = _items(text, at + 1, "]" if opener == "[" else ")", depth)
    elif opener == "{":
        return _pairs(text, at + 1, depth)
    elif (string := _STRING.match(text, at)) is not None:
        value, end = _unescaped(string), string.end()
    else:
        return _atom(text, at, depth)
    if text.startswith(_GAP, end):
        tail, end = parse(text, end + len(_GAP), depth + 1)
        both = isinstance(value, list) and isinstance(tail, list)
        return ([*value, "...", *tail] if both else CUT), end
    return value, end


def keywords(text: str, at: int, depth: int = 0) -> tuple[dict[str, Any], int]:
    """Read "a=1, b=2" up to a closing parenthesis or the end; values without a name are dropped."""
    values: dict[str, Any] = {}
    while at < len(text) and text[at] != ")":
        name = _KEYWORD.match(text, at)
        value, at = parse(text, name.end() if name else at, depth + 1)
        if name:
            values[name[1]] = value
        if not text.startswith(", ", at):
            break
        at += 2
    return values, at


def _items(text: str, at: int, closer: str, depth: int) -> tuple[list[Any], int]:
    values: list[Any] = []
    while not text.startswith(closer, at):
        value, at = parse(text, at, depth + 1)
        values.append(value)
        at = _after_comma(text, at, closer)
    return values, at + 1


def _pairs(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    values: dict[str, Any] = {}
    while not text.startswith("}", at):
        key, at = parse(text, at, depth + 1)
        if text.startswith(": ", at):
            values[str(key)], at = parse(text, at + 2, depth + 1)
        at = _after_comma(text, at, "}")
    return values, at + 1


def _after_comma(text: str, at: int, closer: str) -> int:
    if text.startswith(", ", at):
        return at + 2
    if text.startswith(",", at):
        return at + 1
    if not text.startswith(closer, at):
        _fail()
    return at


def _atom(text: str, at: int, depth: int) -> tuple[Any, int]:
    found = _ATOM.match(text, at)
    if found is None:
        _fail()
    word, end = found[0], found.end()
    if text.startswith("(", end):
        values, end = keywords(text, end + 1, depth + 1)
        if not text.startswith(")", end):
            _fail()
        return values, end + 1
    if word in _CONSTANTS:
        return _CONSTANTS[word], end
    try:
        return (int(word) if len(word) <= 20 else float(word)), end
    except ValueError:
        return _number_or_name(word), end


def _number_or_name(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


def _unescaped(found: re.Match[str]) -> str:
    body = found[1] if found[1] is not None else found[2]
    if "\\" not in body or len(body) > MAX_UNESCAPED_CHARS:
        return body
    return _ESCAPE.sub(_character, body)


def _character(escape: re.Match[str]) -> str:
    code = escape[0][1:]
    if len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if number < 0x110000 else "\ufffd"
    return _NAMED.get(code, code)


def _fail() -> NoReturn:
    raise LiteralError
