"""The settings in effect, each with where it came from; what `config show` prints."""

import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr

from detector.config.catalog import Path, dotted, every_setting
from detector.config.load import Loaded

SECRET = "<secret>"  # noqa: S105 - what is shown instead of one


@dataclass(frozen=True, slots=True)
class Effective:
    """One setting in effect. `value` is plain data (numbers, text, lists, maps)."""

    path: Path
    value: Any
    origin: str

    @property
    def name(self) -> str:
        """The dotted name."""
        return dotted(self.path)

    @property
    def text(self) -> str:
        """The value as a configuration file would hold it."""
        return json.dumps(self.value, ensure_ascii=False)


def effective(loaded: Loaded) -> list[Effective]:
    """Every setting, in the order of the documentation; secrets are replaced."""
    rows = []
    for setting in every_setting(type(loaded.settings)):
        value: Any = loaded.settings
        for step in setting.path:
            value = getattr(value, str(step))
        rows.append(Effective(setting.path, _shown(value), _origin(loaded, setting.path)))
    return rows


def as_tree(rows: list[Effective]) -> dict[str, Any]:
    """Return the same as nested sections."""
    tree: dict[str, Any] = {}
    for row in rows:
        section = tree
        for step in row.path[:-1]:
            section = section.setdefault(str(step), {})
        section[str(row.path[-1])] = row.value
    return tree


def as_yaml(rows: list[Effective]) -> str:
    """Return a configuration file that gives these settings, each with its origin as a comment."""
    lines: list[str] = []
    open_sections: Path = ()
    for row in rows:
        sections = row.path[:-1]
        for depth, name in enumerate(sections):
            if open_sections[: depth + 1] != sections[: depth + 1]:
                lines.append(f"{'  ' * depth}{name}:")
        open_sections = sections
        lines.append(f"{'  ' * len(sections)}{row.path[-1]}: {row.text}  # {row.origin}")
    return "\n".join(lines)


def _origin(loaded: Loaded, path: Path) -> str:
    below = [origin for known, origin in loaded.origins.items() if known[: len(path)] == path]
    return below[0] if below else "default"


def _shown(value: Any) -> Any:
    if isinstance(value, SecretStr | SecretBytes):
        return SECRET
    if isinstance(value, BaseModel):
        return {name: _shown(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(_shown(item) for item in value)
    if isinstance(value, dict):
        return {str(name): _shown(inner) for name, inner in value.items()}
    return value
