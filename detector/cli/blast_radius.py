"""`bleedwatch blast-radius`: whose requests ran where and when something went wrong."""

import csv
import enum
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.output import Format, show, table, write_document
from detector.cli.terminal import note, write

if TYPE_CHECKING:
    from exporters.store.blast_radius import AffectedRequest, Asked, Scope
    from exporters.store.database import Database


class Form(enum.StrEnum):
    """How the result is written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"


@with_examples
def blast_radius(
    incident_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[INCIDENT]", help="Its pools, from five minutes before it to its end."
        ),
    ] = None,
    kv_pool: Annotated[
        str | None, typer.Option("--kv-pool", metavar="NAME", help="A pool, without an incident.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="First start, as RFC 3339.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Last start, as RFC 3339.")
    ] = None,
    longer_than: Annotated[
        int | None,
        typer.Option("--longer-than", metavar="N", min=0, help="Only prompts of more tokens."),
    ] = None,
    contradicted: Annotated[
        bool, typer.Option("--contradicted", help="Only requests that contradict themselves.")
    ] = False,
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="NAME", help="Only requests of one engine.")
    ] = None,
    requests: Annotated[
        bool, typer.Option("--requests", help="List the requests, not their counts by tenant.")
    ] = False,
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: Annotated[
        Form, typer.Option("-o", "--output", help="How to write the result.")
    ] = Form.TABLE,
) -> None:
    """Count the affected requests by tenant, or list them.

    For example:
      bleedwatch blast-radius inc-7f3a
      # every prompt that was longer than the pool, for the file
      bleedwatch blast-radius inc-7f3a --longer-than 681280 --requests -o csv
    """
    from contextlib import closing

    from detector.config.load import load_settings
    from detector.errors import UsageError
    from exporters.store.blast_radius import Asked
    from exporters.store.database import open_store

    if requests and output not in (Form.CSV, Form.JSONL):
        hint = "-o csv or -o jsonl: there may be millions"
        raise UsageError("requests are written line by line", where="--requests", hint=hint)
    asked = Asked(_ms(since, "--from"), _ms(until, "--until"), longer_than, engine, contradicted)
    settings = load_settings(config, assignments=assignments or ()).settings
    with closing(open_store(settings.store)) as database:
        scopes = _scopes(database, incident_id, kv_pool, asked)
        if requests:
            _list(database, scopes, output)
        else:
            _count(database, scopes, output)


def _ms(text: str | None, flag: str) -> int | None:
    from datetime import UTC, datetime

    from detector.errors import UsageError

    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        hint = "such as 2026-11-29T17:00:00Z"
        raise UsageError(f"{text[:40]!r} is no time", where=flag, hint=hint) from None


def _scopes(
    database: "Database", incident_id: str | None, kv_pool: str | None, asked: "Asked"
) -> "list[Scope]":
    from detector.errors import UsageError
    from exporters.incidents.grouping import Span
    from exporters.store.blast_radius import scopes_of
    from exporters.store.incidents import incident, spans_of

    if incident_id is not None:
        with database.read() as connection:
            if incident(connection, incident_id) is None:
                hint = "see which there are: bleedwatch incidents list"
                raise UsageError("there is no such incident", where="INCIDENT", hint=hint)
            spans = spans_of(connection, incident_id)
        return scopes_of([one for one in spans if kv_pool in (None, one.kv_pool)], asked)
    if kv_pool is None or asked.since_ms is None or asked.until_ms is None:
        hint = "name an incident, or give --kv-pool, --from and --until"
        raise UsageError("of what?", where="bleedwatch blast-radius", hint=hint)
    return scopes_of([Span(kv_pool, asked.since_ms, asked.until_ms, "")], asked)


def _count(database: "Database", scopes: "list[Scope]", form: Form) -> None:
    from exporters.store.blast_radius import blast_radius as counted_in

    counted: Counter[str] = Counter()
    with database.read() as connection:
        for scope in scopes:
            counted.update(counted_in(connection, scope).tenants)
    rows = sorted(counted.items(), key=lambda one: (-one[1], one[0]))
    if form is Form.CSV:
        write(_csv([("tenant", "requests"), *rows]))
    elif form is Form.JSONL:
        write("\n".join(json.dumps({"tenant": name, "requests": many}) for name, many in rows))
    elif form is Form.JSON:
        document = {
            "scopes": [scope._asdict() for scope in scopes],
            "requests": counted.total(),
            "tenants": [{"tenant": name, "requests": many} for name, many in rows],
        }
        write_document(document, Format.JSON)
    else:
        show(table(("tenant", "requests"), rows))
    note(f"{counted.total():,} requests of {len(counted):,} tenants")


def _list(database: "Database", scopes: "list[Scope]", form: Form) -> None:
    from exporters.store.blast_radius import AffectedRequest, affected_requests

    if form is Form.CSV:
        write(_csv([AffectedRequest._fields]))
    with database.read() as connection:
        for scope in scopes:
            for chunk in _chunks(affected_requests(connection, scope)):
                lines = (json.dumps(one._asdict()) for one in chunk)
                write(_csv(chunk) if form is Form.CSV else "\n".join(lines))


def _chunks(rows: "Iterator[AffectedRequest]") -> "Iterator[list[AffectedRequest]]":
    from itertools import islice

    from exporters.store.blast_radius import ROWS_AT_ONCE

    while chunk := list(islice(rows, ROWS_AT_ONCE)):
        yield chunk


def _csv(rows: Iterable[Iterable[object]]) -> str:
    """Return lines of RFC 4180; a cell that a spreadsheet would run as a formula is quoted so."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_cell(one) for one in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    is_formula = isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{value}" if is_formula else value
