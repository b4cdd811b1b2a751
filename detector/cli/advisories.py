"""`bleedwatch advisories`: what is known of faults in the isolation of tenants."""

from pathlib import Path
from typing import Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.exit import FINDINGS
from detector.cli.output import Format, write_document, write_rows
from detector.cli.terminal import note, write

app = typer.Typer(no_args_is_help=True, help="List, show and check advisories.")

_COLUMNS = ("id", "program", "affected", "severity", "summary")
_PROBLEM_COLUMNS = ("file", "advisory", "problem", "next_step")

_MAX_BYTES = 8 * 1024 * 1024
"""All advisories that come with the program have a hundredth of that."""


@app.command("list")
@with_examples
def list_advisories(
    engine: Annotated[
        str | None,
        typer.Option("--engine", metavar="NAME", help="Only those about one program."),
    ] = None,
    output: options.Output = Format.TABLE,
) -> None:
    """List the advisories that come with the program.

    For example:
      bleedwatch advisories list --engine vllm
    """
    from detector.advisories.load import advisories
    from detector.advisories.versions import told
    from detector.errors import UsageError

    known = {name for one in advisories() for name in one.packages}
    if engine is not None and engine not in known:
        raise UsageError(
            "no advisories about it are kept here",
            where="--engine",
            hint=f"one of {', '.join(sorted(known))}",
        )
    rows = [
        {
            "id": one.id,
            "program": affected.package.name,
            "affected": "; ".join(map(told, affected.ranges)),
            "severity": one.database_specific.severity,
            "applies_when": list(affected.database_specific.applies_when),
            "summary": one.summary,
        }
        for one in advisories()
        for affected in one.affected
        if engine in (None, affected.package.name)
    ]
    write_rows(rows, output, columns=_COLUMNS)


@app.command("show")
@with_examples
def show(
    identifier: Annotated[str, typer.Argument(metavar="ID", help="Id or alias of an advisory.")],
    output: options.Output = Format.TABLE,
) -> None:
    """Show one advisory with its conditions and sources.

    The other forms are those of OSV.

    For example:
      bleedwatch advisories show GHSA-v97p-wpxp-px84
    """
    import msgspec

    from detector.advisories.load import advisories, features
    from detector.advisories.versions import told
    from detector.errors import UsageError

    wanted = identifier.casefold()
    found = [
        one
        for one in advisories()
        if wanted in {name.casefold() for name in (one.id, *one.aliases)}
    ]
    if not found:
        raise UsageError(
            "there is no such advisory", where="ID", hint="bleedwatch advisories list names all"
        )
    (advisory,) = found
    if output is not Format.TABLE:
        write_document(msgspec.to_builtins(advisory), output)
        return
    lines = [" ".join((advisory.id, *advisory.aliases)), advisory.summary, "", advisory.details, ""]
    for affected in advisory.affected:
        name = affected.package.name
        lines.append(f"{name}: {'; '.join(map(told, affected.ranges))}")
        lines += [
            f"  if {features()[name][word].says} ({word})"
            for word in affected.database_specific.applies_when
        ]
    lines += ["", *(f"{one.type.lower()}: {one.url}" for one in advisory.references)]
    write("\n".join(lines))


@app.command("lint")
@with_examples
def lint(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILES...]", help="Files of advisories; else those that come with the program."
        ),
    ] = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Check files of advisories.

    Exits 1 if something is wrong with them.

    For example:
      bleedwatch advisories lint our-advisories.yaml
    """
    from detector.advisories.load import FILES, check, text_of

    texts = (
        [(str(path), _text(path)) for path in files]
        if files
        else [(name, text_of(name)) for name in FILES]
    )
    problems = [problem._asdict() for problem in check(texts)]
    if problems or output is not Format.TABLE:
        write_rows(problems, output, columns=_PROBLEM_COLUMNS)
    note(f"{len(texts)} files: {len(problems)} problems")
    if problems:
        raise typer.Exit(FINDINGS)


def _text(path: Path) -> str:
    from detector.errors import InputError

    with path.open("rb") as stream:
        content = stream.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise InputError(
            f"more than {_MAX_BYTES:,} bytes", where=str(path), hint="name a file of advisories"
        )
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InputError(
            "the file is not UTF-8", where=str(path), hint="name a YAML file of advisories"
        ) from None
