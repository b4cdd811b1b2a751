"""The command line `bleedwatch`: which commands there are; each lives in a file of its own.

Command files import only what their options need; the work is imported when a command runs, so
that `--help` and `version` answer at once.
"""

import typer

from detector.cli import (
    advisories,
    audit,
    bench,
    blast_radius,
    check,
    checklist,
    commonness,
    config,
    demo,
    doctor,
    explain,
    findings,
    incidents,
    key,
    notify_draft,
    outputs,
    probe,
    replay,
    run,
    sidecar_manifest,
    topics,
    trace,
    trial,
    verify,
    version,
)
from detector.cli import eval as evaluation
from detector.cli.exit import run_program

app = typer.Typer(
    name="bleedwatch",
    help="Find tokens of one tenant in LLM responses given to another, and say why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.callback(help=app.info.help)(version.program)
app.command("demo")(demo.demo)
app.command("replay")(replay.replay)
app.add_typer(run.app, name="run")
app.add_typer(sidecar_manifest.app, name="sidecar")
app.command("eval")(evaluation.evaluate)
app.command("explain")(explain.explain)
app.command("trace")(trace.trace)
app.command("verify")(verify.verify)
app.command("audit")(audit.audit)
app.add_typer(key.app, name="key")
app.add_typer(config.app, name="config")
app.add_typer(topics.app, name="topics")
app.add_typer(commonness.app, name="commonness")
app.add_typer(check.app, name="check")
app.command("probe")(probe.probe)
app.add_typer(advisories.app, name="advisories")
app.command("checklist")(checklist.checklist)
app.command("blast-radius")(blast_radius.blast_radius)
app.command("notify-draft")(notify_draft.notify_draft)
app.add_typer(findings.app, name="findings")
app.add_typer(incidents.app, name="incidents")
app.add_typer(outputs.app, name="outputs")
app.add_typer(trial.app, name="test")
app.command("doctor")(doctor.doctor)
app.command("bench")(bench.bench)
app.command("version")(version.version)


def main() -> None:
    """Run the command line; the exit code says how it ended."""
    run_program(app)


if __name__ == "__main__":
    main()
