"""Loads the settings: defaults, then one YAML file, then environment, then flags.

The result remembers where each value came from, which `config show` prints and every error names.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from detector.config.catalog import Path, dotted, may_be_unset, names_at
from detector.config.environment import (
    CONFIG_VARIABLE,
    Assignment,
    from_environment,
    from_flags,
    from_named_flags,
)
from detector.config.problems import InvalidSettingsError, problem_of
from detector.config.root import Settings
from detector.config.units import parse_duration_ms, parse_size_bytes
from detector.config.yaml_file import read_yaml
from detector.errors import SettingsError

UNITS = {"_ms": parse_duration_ms, "_bytes": parse_size_bytes}
"""Endings of the names of settings whose value may be text with a unit."""

_UNFIT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""What is no text: paths with it cannot be opened, and no encoding carries halves of characters."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Checked settings and, for every value that is not a default, where it came from."""

    settings: Settings
    origins: Mapping[Path, str]


def load_settings(
    config: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    assignments: Iterable[str] = (),
    flags: Iterable[tuple[str, str, str]] = (),
    key_file: str | None = None,
) -> Loaded:
    """Return the settings of all layers; a later layer wins, section by section.

    `config` is a path (else `BLEEDWATCH_CONFIG`, else no file), `assignments` the texts of
    `--set`, `flags` those with names of their own (flag, setting, value), and `key_file` the flag
    `--key-file`. Raises SettingsError (InvalidSettingsError when the
    values are at fault: it holds all problems at once).
    """
    environment = os.environ if environment is None else environment
    layers = _Layers()
    file = config or environment.get(CONFIG_VARIABLE)
    if file:
        layers.add_file(file)
    for assignment in from_environment(Settings, environment):
        layers.assign(assignment)
    for assignment in from_flags(Settings, assignments):
        layers.assign(assignment)
    for assignment in from_named_flags(Settings, flags):
        layers.assign(assignment)
    if key_file:
        layers.assign((("key_file",), key_file, "flag --key-file"))
    return layers.check()


class _Layers:
    """One tree of values that later layers write over, with the origin of every node."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[Path, str] = {}

    def add_file(self, file: str) -> None:
        self.values, lines = read_yaml(file)
        self.origins = {path: f"{file}:{line}" for path, line in lines.items()}

    def assign(self, assignment: Assignment) -> None:
        path, value, origin = assignment
        section = self.values
        for depth, step in enumerate(path[:-1], start=1):
            inner = section.get(str(step))
            if inner is None:
                inner = section[str(step)] = {}
                self.origins[path[:depth]] = origin
            if not isinstance(inner, dict):
                return  # an earlier layer put a value here; the check reports it with its place
            section = inner
        for below in [known for known in self.origins if known[: len(path)] == path]:
            del self.origins[below]
        section[str(path[-1])] = value
        self.origins[path] = origin
        self._mark(path, value, origin)

    def check(self) -> Loaded:
        problems: list[SettingsError] = []
        values = self._normal(self.values, (), problems)
        settings = None
        try:
            settings = Settings.model_validate_json(json.dumps(values), strict=True)
        except ValidationError as error:
            problems += [
                problem_of(entry, Settings, self.origins)
                for entry in error.errors(include_url=False, include_context=False)
            ]
        if problems or settings is None:
            raise InvalidSettingsError(problems)
        return Loaded(settings, self.origins)

    def _mark(self, path: Path, value: Any, origin: str) -> None:
        items: Iterable[tuple[str | int, Any]] = ()
        if isinstance(value, dict):
            items = value.items()
        elif isinstance(value, list):
            items = enumerate(value)
        for step, inner in items:
            self.origins[(*path, step)] = origin
            self._mark((*path, step), inner, origin)

    def _normal(self, value: Any, path: Path, problems: list[SettingsError]) -> Any:
        """Values with units as numbers; an empty section is a section, unless it can be unset.

        A value that is no text, or whose unit cannot be read, is reported and left out, so it is
        reported once. Raises ValueError for an item of a list that is no text.
        """
        if isinstance(value, str) and _UNFIT.search(value):
            raise ValueError("holds control characters or halves of characters")
        if isinstance(value, list):
            return [self._normal(item, (*path, at), problems) for at, item in enumerate(value)]
        if value is None and names_at(Settings, path):
            return None if may_be_unset(Settings, path) else {}
        if not isinstance(value, dict):
            return value
        normal: dict[str, Any] = {}
        for name, inner in value.items():
            here = (*path, name)
            if _UNFIT.search(name):
                problems.append(SettingsError(f"`{dotted(path)}` has a name that is no text"))
                continue
            parse = UNITS.get(name[name.rfind("_") :]) if isinstance(inner, str) else None
            try:
                normal[name] = parse(inner) if parse else self._normal(inner, here, problems)
            except ValueError as error:
                where = self.origins.get(here, "")
                problems.append(SettingsError(f"`{dotted(here)}` {error}", where=where))
        return normal
