"""How a blast radius is written: to the terminal, or to a file whose name says the form."""

import csv
import enum
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from detector.cli.output import show, table
from detector.cli.terminal import note, write
from detector.errors import UsageError

if TYPE_CHECKING:
    from exporters.store.blast_radius import AffectedRequest, Scope

ROWS_AT_ONCE: Final = 1_000
"""Rows of one piece of text; some 200 KB."""

_COUNTED: Final = ("tenant", "requests")


class Form(enum.StrEnum):
    """How the result is written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


def form_of(output: Form | None, file: str | None, *, requests: bool) -> Form:
    """Return the form that is asked for. Raises UsageError for one that does not go together."""
    endings = {f".{one.value}": one for one in Form if one is not Form.TABLE}
    form = output
    if form is None and file is not None:
        form = endings.get(Path(file).suffix.lower())
        if form is None:
            hint = f"end it in one of {', '.join(endings)}, or give -o"
            raise UsageError("the name of the file says no form", where="--file", hint=hint)
    form = Form.TABLE if form is None else form
    if requests and form in (Form.TABLE, Form.JSON):
        hint = "-o csv, -o jsonl or --file affected.parquet: there may be millions"
        raise UsageError("requests are written line by line", where="--requests", hint=hint)
    if form is Form.PARQUET and file is None:
        hint = "name a file: --file affected.parquet"
        raise UsageError("Parquet is no text for a terminal", where="-o", hint=hint)
    if form is Form.TABLE and file is not None:
        hint = "-o csv, json, jsonl or parquet"
        raise UsageError("a table is for the terminal", where="--file", hint=hint)
    return form


def write_counts(
    counted: "Counter[str]", scopes: "Sequence[Scope]", form: Form, file: str | None
) -> None:
    """Write how many requests of each tenant there are, those with most first."""
    rows = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    if form is Form.TABLE:
        show(table(_COUNTED, rows))
    elif form is Form.PARQUET:
        _write_parquet(file, {"tenant": str, "requests": int}, rows)
    elif form is Form.JSON:
        document = {
            "scopes": [scope._asdict() for scope in scopes],
            "requests": counted.total(),
            "tenants": [dict(zip(_COUNTED, row, strict=True)) for row in rows],
        }
        _write_text([json.dumps(document, indent=2)], file)
    else:
        _write_text(_lines(_COUNTED, rows, form), file)
    note(f"{counted.total():,} requests of {len(counted):,} tenants")


def write_requests(rows: "Iterable[AffectedRequest]", form: Form, file: str | None) -> None:
    """Write requests one by one, however many there are."""
    from exporters.store.blast_radius import AffectedRequest

    if form is Form.PARQUET:
        kinds = AffectedRequest.__annotations__.items()
        columns = {name: int if kind in (int, int | None) else str for name, kind in kinds}
        _write_parquet(file, columns, rows)
    else:
        _write_text(_lines(AffectedRequest._fields, rows, form), file)


def _write_parquet(
    file: str | None, columns: Mapping[str, type], rows: Iterable[Sequence[object]]
) -> None:
    from exporters.parquet import write_parquet

    write_parquet(file or "", columns, rows)


def _write_text(pieces: Iterable[str], file: str | None) -> None:
    """Write pieces of lines; who reads the file sees a whole one."""
    if file is None:
        for piece in pieces:
            write(piece)
        return
    from exporters.whole_file import whole_file

    with whole_file(file) as fresh, Path(fresh).open("w", encoding="utf-8") as stream:
        stream.writelines(f"{piece.rstrip(chr(10))}\n" for piece in pieces)


def _lines(names: Sequence[str], rows: Iterable[Sequence[object]], form: Form) -> Iterator[str]:
    if form is Form.CSV:
        yield _csv([names])
    remaining = iter(rows)
    while chunk := list(islice(remaining, ROWS_AT_ONCE)):
        if form is Form.CSV:
            yield _csv(chunk)
        else:
            yield "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in chunk)


def _csv(rows: Iterable[Iterable[object]]) -> str:
    """Return lines of RFC 4180; a cell that a spreadsheet would run as a formula is quoted so."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_cell(one) for one in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value
