"""Reads one YAML file into plain values, remembering the line of every key.

Stricter than YAML asks for, because a configuration that is read differently from how it looks is
worse than one that is refused: no duplicate keys, no anchors, no tags, and only
`true` and `false` are booleans (`no`, `on` and `12:30` stay text).
"""

import re
from pathlib import Path as FilePath
from typing import Any

import yaml

from detector.config.catalog import Path
from detector.errors import SettingsError
from detector.yaml_text import tokens

MAX_FILE_BYTES = 1024 * 1024
"""A configuration is a few kilobytes; more is the wrong file."""

Lines = dict[Path, int]


class _Loader(yaml.SafeLoader):
    """The safe loader with the scalar rules of YAML 1.2."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - the form PyYAML requires


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:null", re.compile(r"(?:~|null|)\Z"), ["~", "n", ""]
)
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(?:true|false)\Z"), ["t", "f"])
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"[-+]?(?:0|[1-9][0-9_]*)\Z"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?\Z"),
    list("-+.0123456789"),
)


def read_yaml(file: str) -> tuple[dict[str, Any], Lines]:
    """Return the values of the file and the line (from 1) of every key and list item.

    An empty file is an empty mapping. Raises SettingsError for everything that is no mapping.
    """
    return parse_yaml(_text(file), file)


def parse_yaml(text: str, name: str) -> tuple[dict[str, Any], Lines]:
    """Like `read_yaml` for text already in memory; `name` stands for it in errors."""
    node = _compose(text, name)
    if node is None:
        return {}, {}
    if not isinstance(node, yaml.MappingNode):
        raise SettingsError(
            f"the file holds {_kind(node)}, not settings",
            where=f"{name}:{_line(node)}",
            hint="write `name: value` lines; `bleedwatch config show -o yaml` prints an example",
        )
    lines: Lines = {}
    return _Reader(name, lines).mapping(node, ()), lines


def parse_scalar(text: str) -> Any:
    """Return what one value of the environment or a flag means in YAML: number, list, text.

    Text that is no YAML is taken as it stands.
    """
    try:
        node = _compose(text, "value")
        return text if node is None else _Reader("value", {}).value(node, ())
    except SettingsError:
        return text


class _Reader:
    """Turns nodes into values and collects the lines."""

    def __init__(self, name: str, lines: Lines) -> None:
        self._name = name
        self._lines = lines
        self._scalars = _Loader("")

    def value(self, node: yaml.Node, path: Path) -> Any:
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            for position, item in enumerate(node.value):
                self._lines[(*path, position)] = _line(item)
            return [self.value(item, (*path, at)) for at, item in enumerate(node.value)]
        try:
            return self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise SettingsError(
                "this value has a type that settings do not use",
                where=f"{self._name}:{_line(node)}",
                hint="write plain text, numbers, true, false, lists or sections",
            ) from error

    def mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for key, value in node.value:
            here = f"{self._name}:{_line(key)}"
            if not isinstance(key, yaml.ScalarNode):
                raise SettingsError("a name must be plain text", where=here)
            if key.value in values:
                first = self._lines[(*path, key.value)]
                raise SettingsError(
                    f"`{key.value}` is set twice, first on line {first}",
                    where=here,
                    hint="keep one of the two",
                )
            self._lines[(*path, key.value)] = _line(key)
            values[key.value] = self.value(value, (*path, key.value))
        return values


def _text(file: str) -> str:
    try:
        with FilePath(file).open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise SettingsError(
            f"cannot read the configuration: {reason}",
            where=file,
            hint="name a YAML file that this user may read; BLEEDWATCH_CONFIG names one too",
        ) from error
    if len(data) > MAX_FILE_BYTES:
        raise SettingsError("larger than 1 MiB: not a configuration", where=file)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SettingsError("not a text file (invalid UTF-8)", where=f"{file}:{line}") from error


def _compose(text: str, name: str) -> yaml.Node | None:
    try:
        for token in tokens(text, _Loader):
            if isinstance(token, yaml.TagToken):
                raise SettingsError(
                    "tags (`!name`) are not supported",
                    where=f"{name}:{token.start_mark.line + 1}",
                    hint='write the plain value, or put text that starts with `!` in "quotes"',
                )
            if isinstance(token, yaml.AnchorToken | yaml.AliasToken):
                raise SettingsError(
                    "anchors and aliases (`&name`, `*name`) are not supported",
                    where=f"{name}:{token.start_mark.line + 1}",
                    hint='repeat the value, or put text that starts with them in "quotes"',
                )
        return yaml.compose(text, Loader=_Loader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SettingsError(
            "not a text file (control characters)", where=f"{name}:{line}"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise SettingsError(
            f"not valid YAML: {error.problem or 'cannot be parsed'}",
            where=name if mark is None else f"{name}:{mark.line + 1}:{mark.column + 1}",
            hint="check indentation and quotes",
        ) from error


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _kind(node: yaml.Node) -> str:
    return "a list" if isinstance(node, yaml.SequenceNode) else "a single value"
