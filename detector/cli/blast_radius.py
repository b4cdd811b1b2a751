"""`bleedwatch blast-radius`: whose requests ran where and when something went wrong."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from detector.cli import options
from detector.cli.blast_radius_output import Form, form_of, write_counts, write_requests
from detector.cli.examples import with_examples
from detector.cli.terminal import note

if TYPE_CHECKING:
    from detector.config.root import Settings
    from exporters.store.blast_radius import AffectedRequest, Asked, Scope
    from exporters.store.database import Database


class _Subject(NamedTuple):
    """What the radius is of: an incident, or a pool with times."""

    incident_id: str | None
    kv_pool: str | None


@with_examples
def blast_radius(
    incident_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[INCIDENT]", help="Its pools, from five minutes before it to its end."
        ),
    ] = None,
    kv_pool: Annotated[
        str | None, typer.Option("--kv-pool", metavar="NAME", help="A pool, without an incident.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="First start, as RFC 3339.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Last start, as RFC 3339.")
    ] = None,
    longer_than: Annotated[
        int | None,
        typer.Option(
            "--longer-than", metavar="N", min=0, max=2**53 - 1, help="Only prompts of more tokens."
        ),
    ] = None,
    contradicted: Annotated[
        bool, typer.Option("--contradicted", help="Only requests that contradict themselves.")
    ] = False,
    engine: Annotated[
        str | None, typer.Option("--engine", metavar="NAME", help="Only requests of one engine.")
    ] = None,
    requests: Annotated[
        bool, typer.Option("--requests", help="List the requests, not their counts by tenant.")
    ] = False,
    kafka: Annotated[
        bool, typer.Option("--kafka", help="Read what Kafka retains: there is no store.")
    ] = False,
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: Annotated[
        Form | None,
        typer.Option("-o", "--output", help="How to write the result [default: table]."),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", metavar="FILE", help="Write there: .csv, .json, .jsonl or .parquet."
        ),
    ] = None,
) -> None:
    """Count the affected requests by tenant, or list them.

    For example:
      bleedwatch blast-radius inc-7f3a
      # every prompt that was longer than the pool, for the file
      bleedwatch blast-radius inc-7f3a --longer-than 681280 --requests --file affected.parquet
      # without a store: what Kafka retains
      bleedwatch blast-radius --kafka --kv-pool pd-0 --from 2026-11-29 --until 2026-11-30
    """
    from detector.cli.times import instant_ms
    from detector.config.load import load_settings
    from exporters.store.blast_radius import Asked

    form = form_of(output, file, requests=requests)
    first_ms, last_ms = instant_ms(since, "--from"), instant_ms(until, "--until")
    asked = Asked(first_ms, last_ms, longer_than, engine, contradicted)
    settings = load_settings(config, assignments=assignments or ()).settings
    subject = _Subject(incident_id, kv_pool)
    source = _retained(settings, subject, asked) if kafka else _stored(settings, subject, asked)
    with source as (database, scopes):
        if requests:
            write_requests(_listed(database, scopes), form, file)
        else:
            write_counts(_counted(database, scopes), scopes, form, file)


@contextmanager
def _stored(
    settings: "Settings", subject: _Subject, asked: "Asked"
) -> "Iterator[tuple[Database, list[Scope]]]":
    """Give the store, and what is asked of it."""
    from exporters.store.database import open_store

    with closing(open_store(settings.store, must_exist=True)) as database:
        if subject.incident_id is None:
            yield database, _without_incident(subject, asked)
        else:
            yield database, _of_incident(database, subject.incident_id, subject.kv_pool, asked)


@contextmanager
def _retained(
    settings: "Settings", subject: _Subject, asked: "Asked"
) -> "Iterator[tuple[Database, list[Scope]]]":
    """Give what Kafka retains of a pool and time, and what is asked of it."""
    from detector.api.from_topics import retained_store
    from detector.cli.explain_steps import when
    from detector.errors import UsageError
    from ingest.kafka_io import KafkaReader

    if subject.incident_id is not None:
        hint = "give --kv-pool, --from and --until, or leave out --kafka"
        raise UsageError("Kafka knows no incidents, the store does", where="INCIDENT", hint=hint)
    scopes = _without_incident(subject, asked)
    with (
        closing(KafkaReader(settings.kafka)) as reader,
        retained_store(reader, settings, scopes[0]) as (database, kept),
    ):
        if kept.refused:
            note(f"{kept.refused:,} records could not be read and do not count")
        if kept.first_sent_ms is not None:
            note(f"what was sent before {when(kept.first_sent_ms)} is no longer kept, nor counted")
        yield database, scopes


def _without_incident(subject: _Subject, asked: "Asked") -> "list[Scope]":
    from detector.errors import UsageError
    from exporters.incidents.grouping import Span
    from exporters.store.blast_radius import scopes_of

    if subject.kv_pool is None or asked.since_ms is None or asked.until_ms is None:
        hint = "name an incident, or give --kv-pool, --from and --until"
        raise UsageError("of what?", where="bleedwatch blast-radius", hint=hint)
    return _some(scopes_of([Span(subject.kv_pool, asked.since_ms, asked.until_ms, "")], asked))


def _of_incident(
    database: "Database", incident_id: str, kv_pool: str | None, asked: "Asked"
) -> "list[Scope]":
    from detector.errors import UsageError
    from exporters.store.blast_radius import scopes_of
    from exporters.store.incidents import incident, spans_of

    with database.read() as connection:
        if incident(connection, incident_id) is None:
            hint = "see which there are: bleedwatch incidents list"
            raise UsageError("there is no such incident", where="INCIDENT", hint=hint)
        spans = spans_of(connection, incident_id)
    return _some(scopes_of([one for one in spans if kv_pool in (None, one.kv_pool)], asked))


def _some(scopes: "list[Scope]") -> "list[Scope]":
    """Return scopes; raises UsageError for what can hold no request: that is no "nobody"."""
    from detector.errors import UsageError

    if not scopes:
        hint = "see its pools: bleedwatch incidents show INCIDENT"
        raise UsageError("the incident is not about that pool", where="--kv-pool", hint=hint)
    if any(one.from_ms > one.until_ms for one in scopes):
        hint = "without them the time is that of the incident"
        raise UsageError("the time ends before it begins", where="--from, --until", hint=hint)
    return scopes


def _counted(database: "Database", scopes: "Sequence[Scope]") -> "Counter[str]":
    from exporters.store.blast_radius import blast_radius as counted_in

    counted: Counter[str] = Counter()
    with database.read() as connection:
        for scope in scopes:
            counted.update(counted_in(connection, scope).tenants)
    return counted


def _listed(database: "Database", scopes: "Sequence[Scope]") -> "Iterator[AffectedRequest]":
    from exporters.store.blast_radius import affected_requests

    with database.read() as connection:
        for scope in scopes:
            yield from affected_requests(connection, scope)
