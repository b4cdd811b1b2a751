"""`bleedwatch outputs`: where alerts go, and what was sent there."""

from typing import Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.output import Format, write_rows

app = typer.Typer(no_args_is_help=True, help="Show where alerts go and what was sent there.")

_OUTPUT_COLUMNS = ("name", "kind", "target", "waiting", "delivered", "rejected", "dropped", "last")
_JOURNAL_COLUMNS = ("seq", "at", "output", "incident", "outcome", "answer", "duration_ms")

_Limit = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Most lines to show.")]


@app.command("list")
@with_examples
def list_outputs(
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Show every output.

    How much waits for it, and how its last sending went.

    For example:
      bleedwatch outputs list --config bleedwatch.yaml
    """
    from detector.config.load import load_settings
    from exporters.outputs.formats.times import rfc3339
    from exporters.sending.overview import overview
    from exporters.store.database import open_store

    settings = load_settings(config, assignments=assignments or ()).settings
    database = open_store(settings.store)
    try:
        with database.read() as connection:
            states = overview(connection, settings.outputs)
    finally:
        database.close()
    rows = [
        {
            "name": state.name,
            "kind": state.kind,
            "target": state.target,
            "dry_run": state.dry_run,
            "waiting": state.waiting,
            "delivered": state.delivered,
            "rejected": state.rejected,
            "dropped": state.dropped,
            "gone": state.is_gone,
            "last": None if state.last is None else f"{state.last.outcome}: {state.last.answer}",
            "last_at": None if state.last is None else rfc3339(state.last.at_ms),
        }
        for state in states
    ]
    write_rows(rows, output, columns=_OUTPUT_COLUMNS)


@app.command("journal")
@with_examples
def journal(
    to: options.To = None,
    incident: Annotated[
        str | None, typer.Option("--incident", metavar="ID", help="Of this incident only.")
    ] = None,
    limit: _Limit = 100,
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Show every attempt to send, the newest first.

    To whom, when, and with which answer.

    For example:
      bleedwatch outputs journal --to pager --limit 20
    """
    from detector.config.load import load_settings
    from exporters.outputs.formats.times import rfc3339
    from exporters.store.database import open_store
    from exporters.store.journal import newest

    settings = load_settings(config, assignments=assignments or ()).settings
    database = open_store(settings.store)
    try:
        with database.read() as connection:
            lines = newest(connection, limit=limit, output=to, incident_id=incident)
    finally:
        database.close()
    rows = [
        {
            "seq": line.seq,
            "at": rfc3339(line.at_ms),
            "output": line.output,
            "incident": line.incident_id,
            "notification": line.notification_id,
            "outcome": str(line.outcome),
            "answer": line.answer,
            "duration_ms": line.duration_ms,
        }
        for line in lines
    ]
    write_rows(rows, output, columns=_JOURNAL_COLUMNS)
