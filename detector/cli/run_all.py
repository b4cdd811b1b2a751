"""`bleedwatch run all`: the whole stream in one process, over a broker in memory."""

from typing import TYPE_CHECKING, Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.options import FailOn
from detector.cli.output import Format

if TYPE_CHECKING:
    from collections.abc import Callable

    from detector.config.root import Settings
    from detector.finding import Finding
    from detector.service import ReplayReport
    from detector.streaming.run_all import Input


@with_examples
def run_all(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILES...", help="Logs, also .gz and .zst; - follows stdin."),
    ] = None,
    log_format: options.LogFormat = "auto",
    engine: options.Engine = None,
    kv_pool: options.KvPool = None,
    history: options.History = None,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen", metavar="[HOST:]PORT", help="Take what sidecars send and gateways push."
        ),
    ] = None,
    config: options.Config = None,
    assignments: options.Assignments = None,
    key_file: options.KeyFile = None,
    fail_on: options.FailOnSeverity = FailOn.HIGH,
    save: options.SaveFindings = None,
    output: options.Output = Format.TABLE,
    incidents: Annotated[
        bool, typer.Option("--incidents", help="Keep incidents in the store and send alerts.")
    ] = False,
) -> None:
    """Run the whole stream in one process.

    Reads logs, sends them through a broker in memory and shows what is found. With -o jsonl each
    finding is written as soon as it is made.

    For example:
      # follow an engine's output
      vllm serve MODEL 2>&1 | bleedwatch run all - --format vllm --config bleedwatch.yaml
      # the same findings as `replay`, made the way a cluster makes them
      bleedwatch run all server.log --history server.log.1 --config bleedwatch.yaml
      # without Kafka: sidecars send here with `--set http.url=http://127.0.0.1:9466`
      bleedwatch run all --listen 9466 --key-file secret.key -o jsonl
    """
    from detector.cli import report
    from detector.cli.listen import check_source, heard, listen_settings
    from detector.cli.stop import stop_on_signals
    from detector.cli.terminal import progress
    from detector.config.load import load_settings
    from detector.streaming.run_all import Input
    from exporters.joined import Joined

    check_source(files, listen)
    if save is not None:
        report.check_savable(save)
    given = listen_settings(listen)
    settings = load_settings(
        config, assignments=assignments or (), flags=given, key_file=key_file
    ).settings
    metrics = Joined()
    with (
        stop_on_signals() as stop,
        progress("reading") as on_progress,
        heard(settings, listen, metrics) as port,
    ):
        source = Input(
            paths=files or (),
            log_format=log_format,
            engine=engine,
            kv_pool=kv_pool,
            history=history or (),
            on_progress=on_progress,
            received=None if port is None else port.received,
            metrics=metrics,
        )
        until = stop if port is None else port.until(stop)
        found = _searched(source, settings, output, save=save, stopped=until, incidents=incidents)
    report.show_report(found, output, saved_as=save, told=output is Format.JSONL)
    if stop.exit_code is not None:
        raise typer.Exit(stop.exit_code)
    report.check_judged(found)
    raise typer.Exit(report.exit_code(found.findings, fail_on))


def _searched(
    source: "Input",
    settings: "Settings",
    output: Format,
    *,
    save: str | None,
    stopped: "Callable[[], bool]",
    incidents: bool,
) -> "ReplayReport":
    """Search, telling findings as they are made if the form allows it.

    What was found on live input before an error is shown: nobody can search that input again. So
    is what the store refused.
    """
    from detector.cli import report
    from detector.cli.terminal import write
    from detector.errors import BleedwatchError, StoreError
    from detector.service import surest
    from detector.streaming.run_all import run

    keep = None
    if incidents:
        from detector.api.embedded import keeper_of

        keep = keeper_of(settings, source.metrics)
    at_once = output is Format.JSONL
    made: list[Finding] = []

    def tell(finding: "Finding") -> None:
        made.append(finding)
        if at_once:
            write(report.finding_line(finding))

    try:
        return run(source, settings, on_finding=tell, stopped=stopped, keep=keep)
    except BleedwatchError as error:
        if source.is_live or isinstance(error, StoreError):
            report.show_partial(surest(made), output, saved_as=save, told=at_once)
        raise
