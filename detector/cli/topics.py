"""`bleedwatch topics`: the topics of the stream, made and checked."""

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.exit import FINDINGS
from detector.cli.output import Format, write_rows
from detector.cli.terminal import note

app = typer.Typer(no_args_is_help=True, help="Make and check the Kafka topics.")

_PROBLEM_COLUMNS = ("topic", "level", "problem", "next_step")


@app.command("create")
@with_examples
def create(
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Make the topics that are missing.

    Those that exist are left as they are. Exits 1 if one of them is not as it must be.

    For example:
      bleedwatch topics create --set kafka.bootstrap_servers=broker:9092
    """
    from detector.config.load import load_settings
    from ingest.kafka_admin import KafkaAdmin
    from ingest.topic_check import check_topics, duration
    from ingest.topics import topic_specs

    settings = load_settings(config, assignments=assignments or ()).settings
    specs = topic_specs(settings.kafka)
    with KafkaAdmin(settings.kafka) as admin:
        made = admin.create(specs)
        states = admin.topics(spec.name for spec in specs)
        problems = check_topics(settings.kafka, settings.detection, states, admin.cluster())
    rows = [
        {
            "topic": state.name,
            "state": "created" if state.name in made else "exists",
            "partitions": state.partitions,
            "replicas": state.replicas,
            **(
                {"retention": duration(state.retention_ms)}
                if output is Format.TABLE
                else {"retention_ms": state.retention_ms}
            ),
        }
        for state in states.values()
    ]
    write_rows(rows, output, columns=tuple(rows[0]))
    for problem in problems:
        note(f"{problem.level}: {problem.topic}: {problem.problem}")
        note(f"  next: {problem.next_step}")
    if any(problem.level == "error" for problem in problems):
        raise typer.Exit(FINDINGS)


@app.command("check")
@with_examples
def check(
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Explain every topic that is not as it must be.

    Exits 1 if there is an error; warnings alone exit 0.

    For example:
      bleedwatch topics check -o json
    """
    from detector.config.load import load_settings
    from ingest.kafka_admin import KafkaAdmin
    from ingest.topic_check import check_topics
    from ingest.topics import topic_specs

    settings = load_settings(config, assignments=assignments or ()).settings
    specs = topic_specs(settings.kafka)
    with KafkaAdmin(settings.kafka) as admin:
        states = admin.topics(spec.name for spec in specs)
        problems = check_topics(settings.kafka, settings.detection, states, admin.cluster())
    if problems or output is not Format.TABLE:
        rows = [problem._asdict() for problem in problems]
        write_rows(rows, output, columns=_PROBLEM_COLUMNS)
    errors = sum(problem.level == "error" for problem in problems)
    note(f"{len(specs)} topics: {errors} errors, {len(problems) - errors} warnings")
    if errors:
        raise typer.Exit(FINDINGS)
