"""`bleedwatch check config`: whether what is to run keeps tenants apart, before it runs."""

import enum
from typing import TYPE_CHECKING, Annotated

import typer

from detector.cli import check_inputs
from detector.cli.examples import with_examples
from detector.cli.exit import FINDINGS
from detector.cli.output import Format, write_document
from detector.cli.terminal import note, printable, write
from detector.cli.words import counted

if TYPE_CHECKING:
    from detector.check.verdict import Result


class Form(enum.StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    JUNIT = "junit"
    GITHUB = "github"


@with_examples
def check_config(
    files: check_inputs.Files = None,
    engine: check_inputs.Kind = None,
    lines: check_inputs.Lines = None,
    urls: check_inputs.Urls = None,
    models: check_inputs.Models = None,
    version: check_inputs.Version = None,
    mean_tokens: check_inputs.MeanTokens = None,
    vouched: check_inputs.Vouch = None,
    token_file: check_inputs.TokenFile = None,
    ca_file: check_inputs.CaFile = None,
    show_all: Annotated[bool, typer.Option("--all", help="Also list checks that pass.")] = False,
    output: Annotated[
        Form, typer.Option("-o", "--output", help="How to write the result.")
    ] = Form.TABLE,
) -> None:
    """Check the configuration of engines before they run.

    Exits 1 if a check fails; warnings, and what cannot be told, do not block.

    For example:
      bleedwatch check config deployment.yaml --model-config config.json
      helm template my-release my-chart | bleedwatch check config - -o github
      bleedwatch check config --engine sglang --args "--max-total-tokens 681280"
    """
    from detector.check.gather import Given, gather
    from detector.check.plan import is_blocked, run
    from detector.check.verdict import gravest

    given = Given(
        files or (),
        lines or (),
        urls or (),
        engine,
        version,
        models or (),
        vouched or (),
        mean_tokens,
        token_file,
        ca_file,
    )
    scope = gather(given)
    results = gravest(list(run(scope)))
    _show(results, output, show_all=show_all)
    _conclude(results, len(scope.engines))
    if is_blocked(results):
        raise typer.Exit(FINDINGS)


def _show(results: list["Result"], form: Form, *, show_all: bool) -> None:
    from detector.check import report
    from detector.check.verdict import Verdict

    if form is Form.JSON:
        write_document([report.row(one) for one in results], Format.JSON)
    elif form is Form.JUNIT:
        write(report.junit(results, suite="bleedwatch check config"))
    elif form is Form.GITHUB:
        write("\n".join(printable(line) for line in report.annotations(results)))
    else:
        for one in results:
            if show_all or one.said.verdict is not Verdict.PASS:
                _write(one)


def _write(result: "Result") -> None:
    said = result.said
    write(f"{said.verdict.value}  {result.check}  {printable(result.engine)}")
    write(f"  {printable(said.found)}")
    write(f"  at {printable(said.where)}")
    if said.why:
        write(f"  why: {said.why}")
    if said.next_step:
        write(f"  next: {said.next_step}")


def _conclude(results: list["Result"], engines: int) -> None:
    from detector.check.verdict import Verdict

    counts = dict.fromkeys(Verdict, 0)
    for one in results:
        counts[one.said.verdict] += 1
    note(
        f"{counted(engines, 'engine')}, {counted(len(results), 'answer')}: "
        + ", ".join(f"{count} {verdict.value}" for verdict, count in counts.items())
    )
    if counts[Verdict.FAIL]:
        note("  next: do not deploy this before what fails is mended")
