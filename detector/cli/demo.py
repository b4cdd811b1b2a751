"""`bleedwatch demo`: sample traffic with planted bleeds through the whole pipeline."""

from typing import Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.output import Format
from detector.cli.terminal import note, program, progress


@with_examples
def demo(
    seed: Annotated[int, typer.Option("--seed", help="Another seed makes other traffic.")] = 7,
    config: options.Config = None,
    assignments: options.Assignments = None,
    save: options.SaveFindings = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Find planted bleeds in made-up traffic.

    Exits 0 whatever is found.

    For example:
      bleedwatch demo --save findings.jsonl
    """
    from detector import demo as sample
    from detector.cli.report import check_savable, show_report
    from detector.config.load import load_settings

    if save is not None:
        check_savable(save)
    settings = load_settings(config, assignments=assignments or ()).settings
    with progress("making traffic") as on_progress:
        report = sample.run_demo(settings, on_progress=on_progress, seed=seed)
    show_report(report, output, saved_as=save)
    note(f"this was sample traffic; search your own with: {program()} replay FILES...")
