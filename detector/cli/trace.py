"""`bleedwatch trace`: whose earlier content a response may hold, however long ago it was served."""

from typing import TYPE_CHECKING, Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.exit import FINDINGS
from detector.cli.output import Format
from detector.cli.terminal import progress

if TYPE_CHECKING:
    from detector.config.root import Settings
    from detector.trace.model import Traced
    from detector.trace.response import Wanted


@with_examples
def trace(
    request_id: Annotated[
        str, typer.Argument(metavar="REQUEST_ID", help="Request whose response is traced.")
    ],
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILES...]",
            help="Logs, also .gz and .zst; without any, the sequences topic is read.",
            show_default=False,
        ),
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option("--tenant", metavar="NAME", help="Its tenant, where several have that id."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="DURATION",
            help="How long before the response a source may have begun [default: trace.since_ms].",
        ),
    ] = None,
    log_format: options.LogFormat = "auto",
    engine: options.Engine = None,
    kv_pool: options.KvPool = None,
    config: options.Config = None,
    assignments: options.Assignments = None,
    key_file: options.KeyFile = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Name the probable sources of a response.

    Scans what the pool has served before, far beyond the window. Exits 1 if a source is named.

    For example:
      # in the sequences topic, a day back
      bleedwatch trace chatcmpl-81f3 --key-file secret.key
      # in log files
      bleedwatch trace chatcmpl-81f3 server.log server.log.1.gz --config bleedwatch.yaml --since 36h
    """
    from detector.cli.trace_report import show_traced
    from detector.config.load import load_settings
    from detector.trace.response import Wanted

    given = [] if since is None else [("--since", "trace.since_ms", since)]
    settings = load_settings(
        config, assignments=assignments or (), flags=given, key_file=key_file
    ).settings
    wanted = Wanted(request_id, tenant, kv_pool)
    if files:
        traced = _in_files(files, wanted, settings, log_format=log_format, engine=engine)
    else:
        traced = _in_topic(wanted, settings)
    show_traced(traced, output)
    if traced.sources:
        raise typer.Exit(FINDINGS)


def _in_files(
    files: list[str], wanted: "Wanted", settings: "Settings", *, log_format: str, engine: str | None
) -> "Traced":
    from detector.trace.files import trace_files

    with progress("reading") as on_progress:
        return trace_files(
            files, wanted, settings, log_format=log_format, engine=engine, on_progress=on_progress
        )


def _in_topic(wanted: "Wanted", settings: "Settings") -> "Traced":
    import time

    from detector.errors import SettingsError
    from detector.trace.stream import StreamTrace
    from ingest.kafka_io import KafkaReader
    from ingest.key_rotation import RotatingKeys
    from ingest.topics import topic_names

    if settings.key_file is None:
        raise SettingsError(
            "what is retained in the sequences topic is sealed",
            where="key_file",
            hint="give the key file of the workers with --key-file, or name log files",
        )
    ring = RotatingKeys(settings.key_file, settings.sealing, now_s=time.monotonic())
    reader = KafkaReader(settings.kafka)
    try:
        with progress("reading") as on_progress:
            return StreamTrace(
                reader,
                ring.ring(time.monotonic()),
                settings,
                topic=topic_names(settings.kafka.topic_prefix).sequences,
                on_progress=on_progress,
            ).trace(wanted, sought_from_ms=int(time.time() * 1000) - settings.trace.since_ms)
    finally:
        reader.close()
