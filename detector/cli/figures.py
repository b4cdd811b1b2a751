"""Shows measured figures: plain values in one table, every group of values in its own."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from detector.cli.output import show, table

if TYPE_CHECKING:
    from rich.console import RenderableType


def show_figures(figures: Mapping[str, object]) -> None:
    """Print `figures`; a value that is a map or a list of rows becomes a table of its own."""
    plain = [(name, value) for name, value in figures.items() if not isinstance(value, dict | list)]
    parts: list[RenderableType] = []
    if plain:
        parts.append(table(("figure", "value"), [(_words(name), value) for name, value in plain]))
    for name, value in figures.items():
        parts += _group(name, value)
    show(*parts)


def _group(name: str, value: object) -> "list[RenderableType]":
    if isinstance(value, dict) and all(isinstance(inner, dict) for inner in value.values()):
        rows = [{_words(name): key, **inner} for key, inner in value.items()]
    elif isinstance(value, dict):
        return ["", table((_words(name), "value"), list(value.items()))]
    elif isinstance(value, list) and all(isinstance(inner, dict) for inner in value):
        rows = value
    else:
        return []
    columns = list(dict.fromkeys(key for row in rows for key in row))
    title = f"\n{_words(name)}"
    return [title, table(columns, [[row.get(key) for key in columns] for row in rows])]


def _words(name: str) -> str:
    return name.replace("_", " ")
