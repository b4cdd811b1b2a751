"""`bleedwatch test alert`: whether alerts arrive, before one has to."""

from typing import Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.exit import FINDINGS
from detector.cli.output import Format, write_rows
from detector.cli.terminal import note

app = typer.Typer(no_args_is_help=True, help="Try whether what is set up works.")

_COLUMNS = ("output", "outcome", "answer", "duration_ms")


@app.command("alert")
@with_examples
def alert(
    to: options.To = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be sent, and send nothing.")
    ] = False,
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Send a test alert to every output and show the answers.

    Exits 1 if one of them did not take it. The journal of the store has a line for each.

    For example:
      bleedwatch test alert --to pager
    """
    from detector.alerting import chosen, send_test, trial, wall_ms
    from detector.config.load import load_settings
    from exporters.outputs.formats import native
    from exporters.store.database import open_store

    settings = load_settings(config, assignments=assignments or ()).settings
    settings = chosen(settings, [to] if to is not None else [])
    if dry_run:
        rows = [
            {
                "output": one.name,
                "target": one.target,
                "notification": native.document(trial(one.name, at_ms=wall_ms())),
            }
            for one in settings.outputs
        ]
        write_rows(rows, output, columns=tuple(rows[0]))
        return
    database = open_store(settings.store)
    try:
        attempts = send_test(settings, database)
    finally:
        database.close()
    sent = [
        {
            "output": one.output,
            "outcome": str(one.outcome),
            "answer": one.answer,
            "duration_ms": one.duration_ms,
            "notification": one.notification_id,
        }
        for one in attempts
    ]
    write_rows(sent, output, columns=_COLUMNS)
    failed = [one.output for one in attempts if one.outcome != "delivered"]
    if failed:
        note(f"not delivered to {', '.join(failed)}")
        raise typer.Exit(FINDINGS)
