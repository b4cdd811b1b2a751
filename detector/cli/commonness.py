"""`bleedwatch commonness`: what the workers of a stream know of what is common."""

from typing import TYPE_CHECKING, Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.output import Format, write_rows
from detector.cli.terminal import note, progress

if TYPE_CHECKING:
    from detector.sketch.token_table import Secret

app = typer.Typer(no_args_is_help=True, help="Fill and show what workers know to be common.")

WRITER_BYTES = 8
"""Names this process beside the workers: chance collides once in 10^9."""

Logs = Annotated[
    list[str], typer.Argument(metavar="FILES...", help="Logs of past traffic; - is stdin.")
]


@app.command("load")
@with_examples
def load(
    files: Logs,
    log_format: options.LogFormat = "auto",
    config: options.Config = None,
    assignments: options.Assignments = None,
    key_file: options.KeyFile = None,
) -> None:
    """Teach running workers past traffic.

    Nothing is searched for. Workers know a second after what several tenants have shown in it.

    For example:
      bleedwatch commonness load yesterday.jsonl.zst --key-file secret.key
    """
    import os

    from detector.config.load import load_settings
    from detector.streaming.commonness_load import CommonnessLoader
    from ingest.kafka_io import KafkaPublisher, KafkaReader
    from ingest.topics import topic_names

    settings = load_settings(config, assignments=assignments or (), key_file=key_file).settings
    secret = _secret(settings.key_file)
    reader = KafkaReader(settings.kafka)
    try:
        ranges = reader.partitions(topic_names(settings.kafka.topic_prefix).shingles)
    finally:
        reader.close()
    publisher = KafkaPublisher(settings.kafka)
    try:
        loader = CommonnessLoader(
            settings, secret, publisher, ranges=ranges, writer=os.urandom(WRITER_BYTES)
        )
        with progress("reading") as on_progress:
            loaded = loader.load(files, log_format=log_format, on_progress=on_progress)
    finally:
        publisher.close()
    note(f"{loaded.requests:,} requests read, {loaded.shingles:,} shingles told to the workers")
    broken = sum(loaded.coverage.broken_by_reason.values())
    if broken:
        note(f"{broken:,} broken entries were left out")


@app.command("show")
@with_examples
def show(
    config: options.Config = None,
    assignments: options.Assignments = None,
    key_file: options.KeyFile = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Count what workers have told each other.

    Reads the topic of what is common from its beginning, as a worker does when it starts.

    For example:
      bleedwatch commonness show --key-file secret.key -o json
    """
    from detector.config.load import load_settings
    from detector.streaming.commonness_show import commonness_rows
    from ingest.kafka_io import KafkaReader

    settings = load_settings(config, assignments=assignments or (), key_file=key_file).settings
    secret = _secret(settings.key_file)
    reader = KafkaReader(settings.kafka)
    try:
        rows = commonness_rows(settings, secret, reader)
    finally:
        reader.close()
    write_rows(rows, output, columns=tuple(rows[0]))


def _secret(path: str | None) -> "Secret":
    from detector.errors import SettingsError
    from ingest.key_file import load_secret

    if path is None:
        raise SettingsError(
            "workers know shingles by tags under their secret",
            where="key_file",
            hint="give the key file of the workers with --key-file",
        )
    return load_secret(path)
