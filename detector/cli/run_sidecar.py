"""`bleedwatch run sidecar`: follows the logs of an engine and sends what they hold, sealed."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.terminal import note

if TYPE_CHECKING:
    from ingest.sidecar_health import SidecarHealth


@with_examples
def run_sidecar(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILES...", help="Logs, patterns, FIFOs, or - for stdin."),
    ] = None,
    log_format: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="auto, jsonl, vllm or sglang.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="NAME", help="Engine of all logs.")
    ] = None,
    kv_pool: options.KvPool = None,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", metavar="FILE", help="Where to keep how far logs are read."),
    ] = None,
    own_logs: Annotated[
        bool, typer.Option("--own-logs", help="Free what is acknowledged of the logs.")
    ] = False,
    config: options.Config = None,
    assignments: options.Assignments = None,
    key_file: options.KeyFile = None,
) -> None:
    """Follow an engine's logs and send what they hold.

    Tokens are hashed as they are read and leave sealed. Runs until it is told to stop (SIGTERM), or
    until standard input ends.

    For example:
      bleedwatch run sidecar /logs/server.log --checkpoint /state/checkpoint --key-file secret.key
      # beside SGLang with a request log of its own, on a memory volume
      bleedwatch run sidecar '/logs/*.log' --format sglang --engine engine-0 --own-logs
    """
    import logging

    from detector.cli.stop import stop_on_signals
    from detector.config.load import load_settings
    from detector.sidecar import Started, run
    from ingest.client_logs import keep_to_errors

    given = (
        ("FILES", "files", list(files) if files else None),
        ("--format", "format", log_format),
        ("--engine", "engine", engine),
        ("--kv-pool", "kv_pool", kv_pool),
        ("--checkpoint", "checkpoint_file", checkpoint),
        ("--own-logs", "own_logs", own_logs or None),
    )
    flags = [
        (flag, f"sidecar.{name}", value if isinstance(value, str) else json.dumps(value))
        for flag, name, value in given
        if value is not None
    ]
    settings = load_settings(
        config, assignments=assignments or (), flags=flags, key_file=key_file
    ).settings

    def started(sidecar: Started) -> None:
        sources = [*sidecar.logs, *(["pushes"] if sidecar.push_port is not None else [])]
        ports = f"health on port {sidecar.health_port}"
        if sidecar.push_port is not None:
            ports += f", pushes on port {sidecar.push_port}"
        note(f"sidecar sends {', '.join(sources)} to {sidecar.servers}, {ports}")

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    # What it could not reach comes to us as an error or a problem, with the next step.
    keep_to_errors("kafka")
    with stop_on_signals() as stop:
        health = run(settings, stopped=stop, on_start=started)
    note(f"sidecar stopped; {how_it_ended(health)}")


def how_it_ended(health: "SidecarHealth") -> str:
    """Say what has become of everything that was read."""
    waiting = 0 if health.spool is None else health.spool.messages
    state = "all is acknowledged"
    if health.unsafe_bytes:
        state = "not all is acknowledged"
    elif waiting:
        state = f"{waiting} messages wait in the spool for the next start"
    if left := sum(log.behind_bytes for log in health.logs):
        state += f", {left} bytes are left for the next start"
    return f"{state}, {health.records.get('sequence', 0)} sequences were sent"
