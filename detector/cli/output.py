"""Writes results to stdout as a table, JSON, JSON lines or YAML.

The machine forms are stable and pure ASCII (other characters escaped), so they are safe to print
and to pipe anywhere. Tables are for people: fitted to the terminal, coloured only on one.
"""

import enum
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from detector.cli.terminal import printable, width, write

if TYPE_CHECKING:
    from rich.console import RenderableType

Row = Mapping[str, object]


class Format(enum.StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"


def write_document(document: object, form: Format) -> None:
    """Write one object (JSON types only) as JSON, one JSON line, or YAML."""
    write(_encoded(document, form))


def write_rows(rows: Sequence[Row], form: Format, *, columns: Sequence[str]) -> None:
    """Write rows of equal shape; `columns` picks and orders what the table shows."""
    if form is Format.TABLE:
        show(table(columns, ([row.get(name, "") for name in columns] for row in rows)))
    elif form is Format.JSONL:
        write("".join(_encoded(dict(row), form) + "\n" for row in rows))
    else:
        write_document([dict(row) for row in rows], form)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> "RenderableType":
    """Draw a plain table: headings in capitals, numbers to the right, first column whole."""
    from rich.table import Table
    from rich.text import Text

    cells = [[_cell(value) for value in row] for row in rows]
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for position, name in enumerate(columns):
        numeric = bool(cells) and all(_is_number(row[position]) for row in cells)
        heading = name.replace("_", " ").upper()
        justify: Literal["right", "left"] = "right" if numeric else "left"
        drawn.add_column(heading, justify=justify, overflow="fold", no_wrap=position == 0)
    for row in cells:
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn


def show(*parts: "RenderableType") -> None:
    """Write rich parts to stdout: plain text unless stdout is a terminal; NO_COLOR is honoured."""
    from rich.console import Console

    terminal = sys.stdout is not None and sys.stdout.isatty()
    console = Console(
        width=width(),
        force_terminal=terminal,
        color_system="auto" if terminal else None,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )
    with console.capture() as captured:
        for part in parts:
            console.print(part)
    lines = captured.get().split("\n")
    write("\n".join(line.rstrip() for line in lines).rstrip("\n"))


def _encoded(document: object, form: Format) -> str:
    if form is Format.YAML:
        import yaml

        return yaml.safe_dump(document, sort_keys=False, allow_unicode=False)
    return json.dumps(document, indent=2 if form is Format.JSON else None)


def _cell(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}".rstrip("0").rstrip(".")
    if isinstance(value, str):
        return printable(value)
    return printable(json.dumps(value))


def _is_number(cell: str) -> bool:
    return cell in ("", "-") or cell.replace(",", "").replace(".", "").lstrip("-").isdigit()
