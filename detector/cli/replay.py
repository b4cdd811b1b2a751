"""`bleedwatch replay`: search log files for bleeds, without a broker."""

from typing import Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.options import FailOn
from detector.cli.output import Format
from detector.cli.terminal import progress


@with_examples
def replay(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILES...", help="Logs, also .gz and .zst; - is stdin."),
    ],
    log_format: options.LogFormat = "auto",
    engine: options.Engine = None,
    kv_pool: options.KvPool = None,
    history: options.History = None,
    config: options.Config = None,
    assignments: options.Assignments = None,
    key_file: options.KeyFile = None,
    fail_on: options.FailOnSeverity = FailOn.HIGH,
    save: options.SaveFindings = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Find bleeds in log files.

    Looks for tokens of one tenant in responses given to another.

    For example:
      # a vLLM log, with yesterday's to learn what is common
      bleedwatch replay server.log --history server.log.1 --config bleedwatch.yaml
      # findings for a script, from a compressed JSONL file
      bleedwatch replay requests.jsonl.zst -o jsonl --fail-on medium
    """
    from detector import service
    from detector.cli.report import check_judged, check_savable, exit_code, show_report
    from detector.config.load import load_settings

    if save is not None:
        check_savable(save)
    settings = load_settings(config, assignments=assignments or (), key_file=key_file).settings
    with progress("reading") as on_progress:
        report = service.replay(
            files,
            settings,
            format=log_format,
            engine=engine,
            kv_pool=kv_pool,
            history=history or [],
            on_progress=on_progress,
        )
    show_report(report, output, saved_as=save)
    check_judged(report)
    raise typer.Exit(exit_code(report.findings, fail_on))
