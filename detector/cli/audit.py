"""`bleedwatch audit`: which KV cache was used by which request, and whose it was."""

from typing import TYPE_CHECKING, Annotated

import typer

from detector.cli import options
from detector.cli.examples import with_examples
from detector.cli.output import Format, show, table, write_document
from detector.cli.terminal import note

if TYPE_CHECKING:
    from detector.config.root import Settings
    from detector.ledger.trail import Link, Subject, Trail
    from detector.ledger.violation import Holder
    from detector.runtime.records import Event
    from ingest.coverage import Coverage

TAG_CHARS = 12
"""Characters of a block's tag in the table; the machine forms hold all of it."""


@with_examples
def audit(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILES...]",
            help="Audit files, also .gz and .zst; without any, the topic of engine events is read.",
            show_default=False,
        ),
    ] = None,
    request_id: Annotated[
        str | None, typer.Option("--request", metavar="ID", help="A request.")
    ] = None,
    block: Annotated[
        str | None,
        typer.Option("--block", metavar="TAG", help="A block, by the start of its keyed tag."),
    ] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", metavar="NAME", help="A tenant.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Leave out what was before: RFC 3339, or 6h ago as 6h."
        ),
    ] = None,
    config: options.Config = None,
    assignments: options.Assignments = None,
    output: options.Output = Format.TABLE,
) -> None:
    """Say which KV cache was used by which request.

    Give one of --request, --block and --tenant. What is shown reaches back as far as the files
    do, or as the topic is kept, or to --since.

    For example:
      # whose memory a request has used, and who used its own
      bleedwatch audit --request chatcmpl-81f3 /var/log/kv/audit.jsonl
      # what a tenant's requests shared in the last six hours, from the topic
      bleedwatch audit --tenant acme --since 6h -o json
    """
    from detector.cli.explain_steps import when
    from detector.cli.times import since_ms
    from detector.config.load import load_settings
    from detector.errors import UsageError
    from detector.ledger.trail import Subject, Trail

    if sum(one is not None for one in (request_id, block, tenant)) != 1:
        raise UsageError(
            "an audit is about one request, block or tenant",
            hint="give one of --request ID, --block TAG and --tenant NAME",
        )
    first_ms = since_ms(since, "--since")
    subject = Subject(request_id, block, tenant)
    trail = Trail(subject)
    settings = load_settings(config, assignments=assignments or ()).settings
    coverage, kept = (
        _in_files(files, trail, first_ms) if files else _in_topic(settings, trail, first_ms)
    )
    if first_ms is not None:
        kept = f"{kept}; what was before {when(first_ms)} is left out"
    if output is Format.TABLE:
        _show(trail)
    else:
        write_document(_document(trail, subject, kept), output)
    _note(trail, coverage, kept)


def _in_files(files: list[str], trail: "Trail", first_ms: int | None) -> tuple["Coverage", str]:
    from detector.audit import read_files

    return read_files(files, trail, since_ms=first_ms), "as far as the files reach"


def _in_topic(settings: "Settings", trail: "Trail", first_ms: int | None) -> tuple["Coverage", str]:
    from contextlib import closing

    from detector.audit import read_topic
    from ingest.kafka_io import KafkaReader
    from ingest.topics import topic_names

    topic = topic_names(settings.kafka.topic_prefix).engine_events
    ahead_ms = settings.stream.ahead_ms
    with closing(KafkaReader(settings.kafka)) as reader:
        coverage = read_topic(reader, topic, trail, since_ms=first_ms, ahead_ms=ahead_ms)
    hours = settings.kafka.retention.inputs_ms / 3_600_000
    return coverage, f"topic {topic} is kept for {hours:g} h"


def _show(trail: "Trail") -> None:
    from detector.cli.explain_steps import when

    steps = [
        (when(one.at_ms), " ".join(filter(None, (one.kind, one.detail))), *_who(one), _tag(one))
        for one in trail.steps
    ]
    links = [
        (when(one.at_ms), *_who(one.user), *_who(one.origin), _tag(one)) for one in trail.links()
    ]
    if steps:
        show(table(("at", "event", "request", "tenant", "block"), steps))
    if links:
        show("", table(("at", "request", "tenant", "used_that_of", "tenant", "block"), links))


def _who(one: "Event | Holder") -> tuple[str | None, str | None]:
    return one.request_id, one.tenant


def _tag(one: "Event | Link") -> str | None:
    return None if one.block is None else one.block[:TAG_CHARS]


def _document(trail: "Trail", subject: "Subject", kept: str) -> dict[str, object]:
    return {
        "subject": {name: value for name, value in subject._asdict().items() if value is not None},
        "events": [_step(one) for one in trail.steps],
        "reuse": [_link(one) for one in trail.links()],
        "retention": {
            "kept": kept,
            "events_read": trail.events,
            "first_ms": trail.first_ms,
            "last_ms": trail.last_ms,
            "left_out": trail.forgotten,
        },
    }


def _step(event: "Event") -> dict[str, object]:
    return {
        "at_ms": event.at_ms,
        "kind": str(event.kind),
        "detail": event.detail,
        "kv_pool": event.kv_pool,
        "engine": event.engine,
        "block": event.block,
        "request_id": event.request_id,
        "tenant": event.tenant,
        "other_tenant": event.other_tenant,
        "created_at_ms": event.created_at_ms,
        "expires_at_ms": event.expires_at_ms,
    }


def _link(link: "Link") -> dict[str, object]:
    return {
        "at_ms": link.at_ms,
        "kv_pool": link.kv_pool,
        "engine": link.engine,
        "block": link.block,
        "user": _holder(link.user),
        "origin": _holder(link.origin),
        "other_tenant": link.is_foreign,
    }


def _holder(holder: "Holder") -> dict[str, object]:
    return dict(holder._asdict())


def _note(trail: "Trail", coverage: "Coverage", kept: str) -> None:
    from detector.cli.explain_steps import when

    if trail.first_ms is None or trail.last_ms is None:
        note(f"no events were read; {kept}")
    else:
        note(
            f"{trail.events:,} events read, from {when(trail.first_ms)} to {when(trail.last_ms)}; "
            f"{kept}"
        )
        if not trail.steps:
            note("none of them is about what was asked for")
    broken = sum(coverage.broken_by_reason.values())
    if broken:
        note(f"{broken:,} broken entries were left out")
    if trail.forgotten:
        note(f"{trail.forgotten:,} events or blocks had no room: links may be missing")
