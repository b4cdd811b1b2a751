"""`bleedwatch eval`: how well the detector does on labelled traffic."""

import json
from pathlib import Path
from typing import Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.output import Format, write_document
from detector.cli.terminal import progress


@with_examples
def evaluate(
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder with requests, history, planted, truth.")
    ],
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Also write the figures as JSON.")
    ] = None,
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Measure recall and false findings.

    DIR holds labelled traffic.

    For example:
      bleedwatch eval generated/ --json eval.json
    """
    from detector import evaluate as evaluation
    from detector.config.load import load_settings

    settings = load_settings(config, assignments=assignments or ()).settings
    with progress("evaluating") as on_progress:
        figures = evaluation.evaluate(directory, settings, on_progress=on_progress)
    if json_file:
        Path(json_file).write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if output is Format.TABLE:
        from detector.cli.figures import show_figures

        show_figures(figures)
    else:
        write_document(figures, output)
