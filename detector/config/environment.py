"""Settings from `BLEEDWATCH_*` environment variables and `--set name=value` flags.

`BLEEDWATCH_KEY_FILE` sets `key_file`; two underscores enter a section, so that
`BLEEDWATCH_DETECTION__WINDOW__LENGTH_MS=90s` sets `detection.window.length_ms`. An empty variable
counts as unset.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from detector.config.catalog import Path, types_at
from detector.config.yaml_file import parse_scalar
from detector.errors import UsageError

PREFIX = "BLEEDWATCH_"

CONFIG_VARIABLE = "BLEEDWATCH_CONFIG"

_NOT_SETTINGS = re.compile(
    r"CONFIG|EVAL_DATA|TEST_\w+"
    # Kubernetes describes every Service to every pod; one named `bleedwatch-api` gives these.
    r"|(?!\w*__)(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_\w+)?)?)"
)

Assignment = tuple[Path, Any, str]
"""A path, the value for it and where the value came from."""


def from_environment(
    model: type[BaseModel], environment: Mapping[str, str]
) -> Iterator[Assignment]:
    """Yield every variable that means a setting, in alphabetic order.

    Unknown names pass through here and are refused, with their variable, by the final check.
    """
    for variable in sorted(environment):
        name = variable.removeprefix(PREFIX)
        if name == variable or not environment[variable] or _NOT_SETTINGS.fullmatch(name):
            continue
        path: Path = tuple(name.lower().split("__"))
        yield path, _value(model, path, environment[variable]), f"env {variable}"


def from_flags(model: type[BaseModel], assignments: Iterable[str]) -> Iterator[Assignment]:
    """Yield every `name=value` of `--set`; raises UsageError for one without a name or `=`."""
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not all(name.split(".")):
            raise UsageError(
                "--set needs NAME=VALUE",
                hint="for example --set detection.window.length_ms=10m",
            )
        path: Path = tuple(name.split("."))
        yield path, _value(model, path, value), f"flag --set {name}"


def from_named_flags(
    model: type[BaseModel], given: Iterable[tuple[str, str, str]]
) -> Iterator[Assignment]:
    """Yield what flags with names of their own, and arguments, set: (typed, setting, value)."""
    for typed, name, value in given:
        path: Path = tuple(name.split("."))
        origin = f"flag {typed}" if typed.startswith("-") else f"argument {typed}"
        yield path, _value(model, path, value), origin


def _value(model: type[BaseModel], path: Path, text: str) -> Any:
    """Text stays text where the setting is text; elsewhere it is read as YAML."""
    kinds = types_at(model, path)
    takes_text = any(isinstance(kind, type) and issubclass(kind, str) for kind in kinds)
    return text if takes_text else parse_scalar(text)
