"""Turns what is wrong with the settings into lines a person can act on.

Values are never repeated back, except numbers and booleans: a wrong value may be a secret.
"""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel

from detector.config.catalog import Path, dotted, every_setting, names_at
from detector.errors import SettingsError

_TYPE_NAMES = {str: "text", list: "a list", dict: "a section", type(None): "nothing"}


class InvalidSettingsError(SettingsError):
    """One or more settings that cannot be used; `problems` holds one error for each."""

    def __init__(self, problems: list[SettingsError]) -> None:
        self.problems = sorted(problems, key=_place)
        first = self.problems[0]
        super().__init__(first.what, where=first.where, hint=first.hint)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


def problem_of(
    error: Mapping[str, Any], model: type[BaseModel], origins: Mapping[Path, str]
) -> SettingsError:
    """Return the error for one entry of a pydantic ValidationError, placed by `origins`."""
    path = _known_part(tuple(error["loc"]), origins)
    where = origins.get(path, "")
    if error["type"] == "extra_forbidden":
        return SettingsError(
            f"unknown setting `{dotted(path)}`", where=where, hint=_suggestion(model, path)
        )
    if error["type"] == "missing":
        missing = (*path, str(error["loc"][-1]))
        return SettingsError(f"`{dotted(missing)}` is required", where=where)
    if error["type"] == "union_tag_not_found":
        return SettingsError(f"`{dotted(path)}` needs `kind`", where=where)
    if error["type"] == "union_tag_invalid":
        kinds = str(error["msg"]).partition("expected tags: ")[2]
        return SettingsError(f"`{dotted(path)}.kind` must be one of {kinds}", where=where)
    what = _plain(str(error["msg"]))
    whole = error["type"] == "value_error" and isinstance(error["input"], dict)
    got = "" if whole else _got(error["input"])
    return SettingsError(f"`{dotted(path)}` {what}{got}", where=where)


def _place(problem: SettingsError) -> tuple[bool, str, int]:
    """Sorts by file and line; variables and flags, which have no line, come last."""
    file, _, line = problem.where.rpartition(":")
    return (not line.isdigit(), file, int(line) if line.isdigit() else 0)


def _known_part(loc: Path, origins: Iterable[Path]) -> Path:
    """`loc` without the steps that stand for alternatives of a type and not for keys."""
    known = set(origins)
    path: Path = ()
    for step in loc:
        if (*path, step) in known:
            path = (*path, step)
    return path


def _plain(message: str) -> str:
    for technical, plain in (
        ("Input should be a valid dictionary or instance of ", "must be a section, not "),
        ("Input should be an object", "must be a section"),
        ("Input should be a valid dictionary", "must be a section"),
        ("Input should be a valid array", "must be a list"),
        ("Input should be a valid list", "must be a list"),
        ("Input should be a valid tuple", "must be a list"),
        ("Input should be a valid integer", "must be a whole number"),
        ("Input should be a valid string", "must be text (put it in quotes)"),
        ("Input should be a valid boolean", "must be true or false"),
        ("Input should be ", "must be "),
        ("Value error, ", ""),
    ):
        if message.startswith(technical):
            if technical.endswith("instance of "):
                return "must be a section"
            return plain + message.removeprefix(technical)
    return message


def _got(value: object) -> str:
    if isinstance(value, bool | int | float):
        return f", got {str(value).lower()}"
    name = _TYPE_NAMES.get(type(value))
    return f", got {name}" if name and not isinstance(value, str) else ""


def _suggestion(model: type[BaseModel], path: Path) -> str:
    names = names_at(model, path[:-1])
    wanted = str(path[-1])
    near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean `{dotted((*path[:-1], near[0]))}`?"
    elsewhere = [dotted(s.path) for s in every_setting(model) if s.path[-1] == wanted]
    if elsewhere:
        return f"did you mean `{elsewhere[0]}`?"
    return f"known here: {', '.join(names)}" if names else "no settings are known here"
