"""`bleedwatch checklist`: the review "safe by default" of what is to run, with evidence."""

import enum
from typing import Annotated

import typer

from detector.cli import check_inputs
from detector.cli.examples import with_examples
from detector.cli.exit import FINDINGS
from detector.cli.terminal import write


class Page(enum.StrEnum):
    """How the checklist is written."""

    MARKDOWN = "markdown"
    HTML = "html"


@with_examples
def checklist(
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
    monitors: Annotated[
        list[str] | None,
        typer.Option(
            "--monitor", metavar="URL", help="A metrics port of a process of ours; repeatable."
        ),
    ] = None,
    probe: Annotated[
        str | None,
        typer.Option("--probe", metavar="FILE", help="What `bleedwatch probe --record` wrote."),
    ] = None,
    output: Annotated[
        Page, typer.Option("-o", "--output", help="How to write the checklist.")
    ] = Page.MARKDOWN,
) -> None:
    """Answer the questions of a review, with evidence.

    Exits 1 if an answer is no.

    For example:
      bleedwatch checklist deploy.yaml --model-config config.json -o html > checklist.html
    """
    import time

    from detector.check import checklist_page
    from detector.check import review as reviewed
    from detector.check.checklist import Answer
    from detector.check.checklist import checklist as answers
    from detector.check.gather import Given, gather
    from detector.check.plan import run
    from exporters.outputs.formats.times import rfc3339

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
    results = list(run(scope))
    results += reviewed.versions(scope, results)
    results += reviewed.monitors(monitors or ())
    results += [] if probe is None else reviewed.probed(probe)
    items = answers(results)
    page = checklist_page.html if output is Page.HTML else checklist_page.markdown
    write(page(items, made_at=rfc3339(int(time.time() * 1000))))
    if any(item.answer is Answer.NO for item in items):
        raise typer.Exit(FINDINGS)
