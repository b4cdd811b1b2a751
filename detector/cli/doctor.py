"""`bleedwatch doctor`: what makes the monitor blind here, and the next step for each fault."""

import enum
from typing import Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.exit import FINDINGS
from detector.cli.output import Format, write_rows
from detector.cli.terminal import note, write

_COLUMNS = ("check", "level", "subject", "found", "next_step")


class What(enum.StrEnum):
    """What a machine is looked at for."""

    SIDECAR = "sidecar"


@with_examples
def doctor(
    what: Annotated[
        What | None,
        typer.Argument(metavar="[sidecar]", help="Also look at logs and engines of a sidecar."),
    ] = None,
    flags: Annotated[
        str | None,
        typer.Option(
            "--flags",
            metavar="ENGINE",
            help="Only list what makes an engine visible: all, vllm, sglang, or vllm=0.33.0.",
        ),
    ] = None,
    config: options.Config = None,
    assignments: options.Assignments = None,
    key_file: options.KeyFile = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Check what the monitor needs.

    Says the next step for each fault. Exits 1 if there is an error; warnings alone exit 0.

    For example:
      bleedwatch doctor sidecar --config sidecar.yaml
      # the flags of one version of an engine, and what each costs
      bleedwatch doctor --flags sglang=0.5.23
    """
    if flags is not None:
        _list_flags(flags, output)
        return
    from detector.config.load import load_settings
    from detector.doctor.plan import diagnose, is_failed
    from detector.doctor.verdicts import Level

    settings = load_settings(config, assignments=assignments or (), key_file=key_file).settings
    lines = list(diagnose(settings, has_sidecar=what is What.SIDECAR))
    rows = [{"check": line.check, **line.verdict._asdict()} for line in lines]
    for row in rows:
        row["level"] = str(row["level"])
    write_rows(rows, output, columns=_COLUMNS)
    counts = [sum(line.verdict.level is level for line in lines) for level in Level]
    note(", ".join(f"{count} {level}" for level, count in zip(Level, counts, strict=True)))
    if is_failed(lines):
        raise typer.Exit(FINDINGS)


def _list_flags(wanted: str, output: Format) -> None:
    from detector.doctor.visibility import flags_for

    rows = [
        {
            "engine": kind,
            "flag": flag.flag,
            "needed": flag.is_needed,
            "since": flag.since,
            "before": flag.before,
            "shows": flag.shows,
            "costs": flag.costs,
        }
        for kind, flag in flags_for(wanted)
    ]
    if output is not Format.TABLE:
        write_rows(rows, output, columns=())
        return
    for row in rows:
        optional = "" if row["needed"] else " (optional)"
        # not in columns, so that flags can be copied
        write(f"{row['engine']}: {row['flag']}{optional}\n")
        write(f"  shows: {row['shows']}\n  costs: {row['costs']}\n")
