"""`bleedwatch check version`: which advisories about isolation apply to an engine, and why."""

from typing import TYPE_CHECKING, Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.exit import FINDINGS
from detector.cli.output import Format, write_rows
from detector.cli.terminal import note, printable, write

if TYPE_CHECKING:
    from detector.advisories.assess import Assessment, Deployment

_COLUMNS = ("advisory", "verdict", "severity", "summary", "because")


@with_examples
def check_version(
    engine: Annotated[
        str | None,
        typer.Option("--engine", metavar="NAME", help="What runs, such as vllm or sglang."),
    ] = None,
    version: Annotated[
        str | None, typer.Option("--version", metavar="VERSION", help="Its version.")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            metavar="URL",
            help="Ask the engine instead: its address, with or without a path such as /version.",
        ),
    ] = None,
    arguments: Annotated[
        str | None,
        typer.Option("--args", metavar="LINE", help="The flags it is started with, in quotes."),
    ] = None,
    unused: Annotated[
        list[str] | None,
        typer.Option(
            "--unused",
            metavar="FEATURE",
            help="A feature that is not in use, where no flag tells it; repeatable.",
        ),
    ] = None,
    show_all: Annotated[
        bool, typer.Option("--all", help="Also list advisories that do not apply.")
    ] = False,
    output: options.Output = Format.TABLE,
) -> None:
    """Say which advisories apply to a version and its flags.

    Exits 1 if one applies, or may apply because no flag tells.

    For example:
      bleedwatch check version --engine sglang --version 0.5.20 --args "--enable-lmcache"
      # what runs there
      bleedwatch check version --engine vllm --url http://127.0.0.1:8000
    """
    from detector.advisories.assess import Verdict, assess
    from detector.advisories.load import advisories, features

    deployment = _deployment(engine, version, url, arguments, unused or [])
    found = assess(advisories(), deployment, features())
    hits = [one for one in found if one.verdict in (Verdict.APPLIES, Verdict.MAY_APPLY)]
    _show(found if show_all or output is not Format.TABLE else hits, output)
    _conclude(hits, deployment, len(found))
    if hits:
        raise typer.Exit(FINDINGS)


def _deployment(
    engine: str | None,
    version: str | None,
    url: str | None,
    arguments: str | None,
    unused: list[str],
) -> "Deployment":
    from detector.advisories.deployment import deployment_of
    from detector.engine_version import ask

    answer = None if url is None else ask(url)
    return deployment_of(engine, version, answer=answer, arguments=arguments, unused=unused)


def _show(found: list["Assessment"], output: Format) -> None:
    rows = [
        {
            "advisory": one.advisory.id,
            "verdict": one.verdict.value,
            "severity": one.advisory.database_specific.severity,
            "summary": one.advisory.summary,
            "because": one.because,
            "not_known": list(one.unknown),
            "references": [reference.url for reference in one.advisory.references],
        }
        for one in found
    ]
    if output is not Format.TABLE:
        write_rows(rows, output, columns=_COLUMNS)
        return
    for row, one in zip(rows, found, strict=True):
        write(f"{row['advisory']}  {row['verdict']}  ({row['severity']})  {row['summary']}")
        write(f"  because {printable(one.because)}")
        write(f"  see {one.advisory.references[0].url}")


def _conclude(hits: list["Assessment"], deployment: "Deployment", known: int) -> None:
    from detector.advisories.assess import Verdict

    running = f"{deployment.program} {deployment.version}"
    sure = sum(one.verdict is Verdict.APPLIES for one in hits)
    note(
        f"{running}: {sure} of {known} advisories apply, {len(hits) - sure} may apply"
        if known
        else f"{running}: no advisory about it is known"
    )
    unknown = sorted({name for one in hits for name in one.unknown})
    if unknown:
        given = "" if deployment.arguments is not None else "give its flags with --args, and "
        note(f"  next: {given}say with --unused what is not in use: {', '.join(unknown)}")
