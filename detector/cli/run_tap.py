"""`bleedwatch run tap`: a proxy before an engine, which keeps the token ids that pass."""

import json
from typing import Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.terminal import note


@with_examples
def run_tap(
    engine_url: Annotated[
        str | None, typer.Argument(metavar="URL", help="Where the engine listens.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="NAME", help="vllm or sglang.")
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="Address to listen on.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", help="TCP port to listen on.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="NAME", help="Name of the engine.")
    ] = None,
    kv_pool: options.KvPool = None,
    config: options.Config = None,
    assignments: options.Assignments = None,
    key_file: options.KeyFile = None,
) -> None:
    """Stand before an engine and send the ids that pass.

    They are hashed and sealed before they leave the process.

    Requests reach the engine and answers the client whatever happens to the watching. Runs until
    it is told to stop (SIGTERM).

    For example:
      bleedwatch run tap http://127.0.0.1:8000 --port 8080 --key-file secret.key
      # before SGLang, keeping the KV memory of tenants apart
      bleedwatch run tap http://127.0.0.1:30000 --kind sglang --set 'tap.isolate=["cache_salt"]'
    """
    import logging

    from detector.cli.stop import stop_on_signals
    from detector.config.load import load_settings
    from detector.tap import Started, run
    from ingest.client_logs import keep_to_errors

    given = (
        ("URL", "tap.engine_url", engine_url),
        ("--kind", "tap.engine_kind", kind),
        ("--host", "tap.host", host),
        ("--port", "tap.port", port),
        ("--engine", "sidecar.engine", engine),
        ("--kv-pool", "sidecar.kv_pool", kv_pool),
    )
    flags = [
        (flag, name, value if isinstance(value, str) else json.dumps(value))
        for flag, name, value in given
        if value is not None
    ]
    settings = load_settings(
        config, assignments=assignments or (), flags=flags, key_file=key_file
    ).settings

    def started(tap: Started) -> None:
        note(
            f"tap on port {tap.port} stands before {tap.engine} and sends to {tap.receiver}, "
            f"health on port {tap.health_port}"
        )

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    # What it could not reach comes to us as an error or a problem, with the next step.
    keep_to_errors("kafka")
    with stop_on_signals() as stop:
        state = run(settings, stopped=stop, on_start=started)
    unseen = sum(state.blind.values())
    note(f"tap stopped; {state.kept} of {state.watched} requests were sent, {unseen} losses")
