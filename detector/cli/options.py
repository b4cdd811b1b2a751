"""Options that several commands share, each defined once."""

import enum
from typing import Annotated

import typer

from detector.cli.output import Format


class FailOn(enum.StrEnum):
    """Lowest severity of a finding that makes the exit code 1."""

    INFO = "info"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"
    NEVER = "never"


Config = Annotated[
    str | None,
    typer.Option("--config", metavar="FILE", help="YAML configuration [env: BLEEDWATCH_CONFIG]."),
]

Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Set one setting, e.g. detection.window.length_ms=10m; repeatable.",
    ),
]

KeyFile = Annotated[
    str | None,
    typer.Option(
        "--key-file", metavar="FILE", help="Deployment secret [env: BLEEDWATCH_KEY_FILE]."
    ),
]

Output = Annotated[Format, typer.Option("-o", "--output", help="How to write the result.")]

SaveFindings = Annotated[
    str | None,
    typer.Option(
        "--save", metavar="FILE", help="Also write the findings as JSON lines, for `explain`."
    ),
]

FailOnSeverity = Annotated[
    FailOn, typer.Option("--fail-on", help="Lowest severity that makes the exit code 1.")
]

LogFormat = Annotated[
    str, typer.Option("--format", metavar="NAME", help="auto, jsonl, vllm or sglang.")
]


def _name(given: str | None) -> str | None:
    """Refuse what no record may be of."""
    from ingest.names import is_name

    if given is not None and not is_name(given):
        raise typer.BadParameter("no name: it is empty, too long or not printable")
    return given


Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        callback=_name,
        help="Engine, where the log does not name it.",
    ),
]

KvPool = Annotated[
    str | None,
    typer.Option(
        "--kv-pool", metavar="NAME", callback=_name, help="KV pool, where it is not the engine."
    ),
]

History = Annotated[
    list[str] | None,
    typer.Option("--history", metavar="FILE", help="Earlier traffic to learn from; repeatable."),
]

To = Annotated[str | None, typer.Option("--to", metavar="NAME", help="Only this output.")]

OfTenant = Annotated[
    str | None, typer.Option("--tenant", metavar="NAME", help="About this tenant, on either side.")
]

OfRule = Annotated[str | None, typer.Option("--rule", metavar="ID", help="Of this rule only.")]

OfSeverity = Annotated[
    str | None, typer.Option("--severity", metavar="WORD", help="Of this severity only.")
]

OfPool = Annotated[str | None, typer.Option("--kv-pool", metavar="NAME", help="Of this KV pool.")]

MostRows = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="Most rows to show.")]
