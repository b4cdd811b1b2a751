"""`bleedwatch run worker`: one worker of a group, over Kafka."""

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.terminal import note


@with_examples
def run_worker(
    config: options.Config = None,
    assignments: options.Assignments = None,
    key_file: options.KeyFile = None,
) -> None:
    """Run one worker of a group.

    Reads what the sidecars send, finds bleeds and writes them to the topic of findings, until it is
    told to stop (SIGTERM). Workers with the same topic prefix share the partitions.

    For example:
      bleedwatch run worker --key-file secret.key --set kafka.bootstrap_servers=broker:9092
    """
    from detector.config.load import load_settings
    from detector.streaming.run_worker import Started, run
    from ingest.client_logs import brief_logs, keep_to_errors

    settings = load_settings(config, assignments=assignments or (), key_file=key_file).settings

    def started(worker: Started) -> None:
        note(
            f"worker of group {worker.group} on {worker.servers}: {worker.partitions} partitions, "
            f"health on port {worker.health_port}"
        )

    brief_logs()
    # What it could not reach comes to us as an error, with the next step.
    keep_to_errors("kafka")
    run(settings, on_start=started)
    note("worker stopped and left its group")
