"""`bleedwatch run api`: keeps incidents and sends alerts, over Kafka."""

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.terminal import note


@with_examples
def run_api(config: options.Config = None, assignments: options.Assignments = None) -> None:
    """Keep incidents and send alerts.

    Reads what the workers find, groups it into incidents, keeps them in the store and tells the
    outputs, until it is told to stop (SIGTERM). Several may share one PostgreSQL store.

    For example:
      bleedwatch run api --config bleedwatch.yaml --set store.url=sqlite:////var/lib/bleedwatch.db
      # with the password in the file that store.password_file names
      bleedwatch run api --config bleedwatch.yaml --set store.url=postgresql://me@db/bleedwatch
    """
    import logging

    from detector.api.run_api import Started, run
    from detector.cli.stop import stop_on_signals
    from detector.config.load import load_settings
    from ingest.client_logs import keep_to_errors

    settings = load_settings(config, assignments=assignments or ()).settings

    def started(api: Started) -> None:
        note(
            f"api keeps the incidents of {api.servers} in {api.store}, {api.outputs} outputs, "
            f"health on port {api.health_port}"
            f"{'' if api.api_port is None else f', pages and API on port {api.api_port}'}"
        )

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    # What it could not reach comes to us as an error or a problem, with the next step.
    keep_to_errors("kafka")
    with stop_on_signals() as stop:
        run(settings, stopped=stop, on_start=started)
    note("api stopped; what was read is recorded")
