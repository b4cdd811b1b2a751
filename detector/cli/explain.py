"""`bleedwatch explain`: how one finding came about, step by step, from its record alone."""

from typing import TYPE_CHECKING, Annotated

import typer

from detector.cli.examples import with_examples
from detector.cli.output import Format, show, table, write_document
from detector.cli.terminal import note, printable, width

if TYPE_CHECKING:
    from rich.console import RenderableType

    from detector.finding import Finding, Run

LONGEST_RUNS = 10
"""Runs listed; a whole response under token noise can have hundreds."""


@with_examples
def explain(
    identifier: Annotated[
        str,
        typer.Argument(metavar="ID", help="Id of a finding, or its first 6 or more characters."),
    ],
    findings: Annotated[
        str, typer.Option("--from", metavar="FILE", help="Findings as JSON lines; - is stdin.")
    ],
    output: Annotated[
        Format, typer.Option("-o", "--output", help="How to write the result.")
    ] = Format.TABLE,
) -> None:
    """Say step by step why a finding is one.

    Shows the runs, what was subtracted and why, and which threshold decided.

    For example:
      # from a file that `replay --save` or `replay -o jsonl` wrote
      bleedwatch explain 3f9a1c2b4d5e --from findings.jsonl
    """
    from detector.cli.finding_file import find

    finding = find(identifier, findings)
    if output is not Format.TABLE:
        import msgspec

        write_document(msgspec.to_builtins(finding), output)
        return
    show(*explained(finding))
    note(_next(finding))


def explained(finding: "Finding") -> list["RenderableType"]:
    """Return the steps of an explanation, ready to be shown."""
    from detector.cli.explain_reports import report_steps
    from detector.cli.explain_steps import steps

    told = steps(finding) if finding.is_content else report_steps(finding)
    parts: list[RenderableType] = [_heading(finding)]
    for number, (title, sentences, runs) in enumerate(told, start=1):
        parts.append(_paragraph(f"\n{number}. {title}", bold=True))
        parts += [_paragraph(line, indent=3) for line in sentences]
        if runs:
            parts.append(_runs(runs))
    return parts


def _heading(finding: "Finding") -> "RenderableType":
    from detector.rules.catalog import RULES

    rule = RULES.get(finding.rule)
    title = "" if rule is None else f" ({rule.title})"
    return _paragraph(
        f"{finding.id}\n{finding.rule}{title}, severity {finding.severity.value}, "
        f"confidence {finding.confidence.value}\n{finding.explanation}"
    )


def _paragraph(text: str, *, indent: int = 0, bold: bool = False) -> "RenderableType":
    from rich.padding import Padding
    from rich.text import Text

    safe = "\n".join(printable(line) for line in text.split("\n"))
    return Padding(Text(safe, style="bold" if bold else ""), (0, 0, 0, indent))


def _runs(runs: tuple["Run", ...]) -> "RenderableType":
    from rich.padding import Padding

    longest = sorted(runs, key=lambda run: (-run.unexplained, -run.length))[:LONGEST_RUNS]
    rows = [(r.sink_start, r.source_start, r.length, r.unexplained) for r in longest]
    drawn = table(("in sink at", "in source at", "matched tokens", "unexplained"), rows)
    return Padding(drawn, (0, 0, 0, 3), expand=width() <= 40)


def _next(finding: "Finding") -> str:
    if not finding.is_content:
        return f"next: docs/rules.md says what to do first about {finding.rule}"
    sink, source = finding.sink.request_id, finding.source.request_id
    return f"next: compare request {sink} with request {source} in the logs of {finding.engine}"
