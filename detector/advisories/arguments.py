"""The flags of a command line, or of an engine's own answer, by their names without dashes."""

import re
import shlex
from collections.abc import Mapping
from typing import Final

from detector.errors import UsageError

Arguments = Mapping[str, tuple[str, ...]]
"""By name, in dashes; the values given, none for a flag that has none."""

_FLAG: Final = re.compile(r"--?([A-Za-z][\w.-]*)(?:=(.*))?", re.DOTALL)

OFF: Final = ("false", "none", "null", "off", "no", "0", "")
"""Values by which a flag is as good as not given."""


def parse_arguments(line: str) -> Arguments:
    """Return the flags of a command line; words before the first flag are left out.

    Underscores in names are dashes, as the engines read them; of `--x` and `--no-x` the last one
    counts. Raises UsageError for open quotes.
    """
    try:
        words = shlex.split(line)
    except ValueError:
        raise UsageError(
            "the arguments have a quote that is not closed",
            where="--args",
            hint="put the whole line in quotes of the other kind",
        ) from None
    found: dict[str, list[str]] = {}
    name: str | None = None
    for word in words:
        flag = _FLAG.fullmatch(word)
        if flag is not None:
            name = flag[1].replace("_", "-")
            found.pop(opposite(name), None)
            found.setdefault(name, [])
            if flag[2] is not None:
                found[name].append(flag[2])
        elif name is not None:
            found[name].append(word)
    return {name: tuple(values) for name, values in found.items()}


def opposite(name: str) -> str:
    """Return the flag that takes another one back: `no-x` of `x`, and `x` of `no-x`."""
    return name[3:] if name.startswith("no-") else f"no-{name}"


def told_arguments(answer: Mapping[str, object]) -> Arguments:
    """Return the flags that an engine tells of itself, as JSON types."""
    return {
        name.replace("_", "-"): () if value is True else (_text(value),)
        for name, value in answer.items()
        if value is None or isinstance(value, str | int | float | bool)
    }


def _text(value: object) -> str:
    return "none" if value is None else str(value).lower() if value is False else str(value)
