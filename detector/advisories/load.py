"""Reads advisories and features from the files of the program, and checks files of advisories."""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec
import yaml

from detector.advisories.model import Advisory, Features
from detector.advisories.versions import problems as range_problems
from detector.yaml_text import plain_values

FILES: Final = ("sglang.yaml", "vllm.yaml", "caches.yaml", "engines.yaml")
FEATURES: Final = "features.yaml"


class Problem(NamedTuple):
    """One thing that is wrong with a file of advisories."""

    file: str
    advisory: str
    problem: str
    next_step: str


@cache
def advisories() -> tuple[Advisory, ...]:
    """Return all advisories that come with the program, those of one program in a row."""
    return tuple(
        advisory
        for name in FILES
        for advisory in msgspec.convert(yaml.safe_load(text_of(name)), list[Advisory])
    )


@cache
def features() -> Features:
    """Return the features that advisories ask for."""
    return msgspec.convert(yaml.safe_load(text_of(FEATURES)), Features)


def text_of(name: str) -> str:
    """Return the text of a file that comes with the program."""
    return files("detector.advisories").joinpath(name).read_text(encoding="utf-8")


def check(texts: Iterable[tuple[str, str]]) -> list[Problem]:
    """Return what is wrong with files of advisories, given as name and text."""
    found: list[Problem] = []
    seen: dict[str, str] = {}
    for file, text in texts:
        try:
            entries = plain_values(text)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            place = "" if mark is None else f" in line {mark.line + 1}"
            found.append(Problem(file, "", f"no YAML{place}", "mend the syntax"))
            continue
        if not isinstance(entries, list):
            found.append(Problem(file, "", "no list of advisories", "begin each with - id:"))
            continue
        for number, entry in enumerate(entries, start=1):
            found += _entry_problems(file, number, entry, seen)
    return found


def _entry_problems(
    file: str, number: int, entry: object, seen: dict[str, str]
) -> Iterator[Problem]:
    given = entry.get("id") if isinstance(entry, dict) else None
    name = given if given and isinstance(given, str) else f"entry {number}"
    try:
        advisory = msgspec.convert(entry, Advisory)
    except msgspec.ValidationError as error:
        yield Problem(file, name, str(error), "see docs/advisories.md for the form")
        return
    for identifier in (advisory.id, *advisory.aliases):
        if identifier in seen:
            what = f"{identifier} stands already in {seen[identifier]}"
            yield Problem(file, name, what, "keep one of the two")
        seen[identifier] = name
    known = features()
    for affected in advisory.affected:
        for one in affected.ranges:
            for what in range_problems(one):
                yield Problem(file, name, what, "write versions as PEP 440 orders them")
        for feature in affected.database_specific.applies_when:
            if feature not in known.get(affected.package.name, {}):
                what = f"no feature {feature} of {affected.package.name} is known"
                yield Problem(file, name, what, f"name one of {FEATURES}")
