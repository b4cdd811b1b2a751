"""Puts changes of incidents, and heartbeats, into the outbox, in the transaction that makes them.

One notification for each change and output that is told of it. What is resolved goes to those that
were told of the incident, whatever they ask for: they must not wait for its end. An incident that
comes to match what an output asks for, by a tenant, a pool or its confidence, is told there then.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import xxhash
from sqlalchemy import Connection

from detector.finding import Confidence, Severity
from exporters.incidents.model import Change, ChangeKind
from exporters.outputs.notification import Kind, Notification
from exporters.outputs.settings import OutputSettings
from exporters.sending.decide import FRESH_MS, QUIET
from exporters.sending.matching import wants
from exporters.store import outbox, silences
from exporters.store.heartbeats import Heartbeat

TOLD: Final = {
    ChangeKind.OPENED: Kind.OPENED,
    ChangeKind.REOPENED: Kind.REOPENED,
    ChangeKind.SEVERITY_RAISED: Kind.UPDATED,
    ChangeKind.RULE_ADDED: Kind.UPDATED,
    ChangeKind.ACKNOWLEDGED: Kind.ACKNOWLEDGED,
    ChangeKind.RESOLVED: Kind.RESOLVED,
    ChangeKind.MERGED: Kind.RESOLVED,
}
"""Changes that are told to all who know the incident or ask for it. A further finding, tenant or
pool is not: it would page again for what is known. It is told where nothing was told before."""

MINUTE_MS: Final = 60_000
"""A receiver of heartbeats is told once in so long at most, however many senders there are."""

FOLLOW_UPS: Final = frozenset({Kind.ACKNOWLEDGED, Kind.RESOLVED})
"""Kinds that mean something only to those who know the incident."""


def announce(
    connection: Connection,
    changes: Iterable[Change],
    *,
    outputs: Sequence[OutputSettings],
    external_url: str | None = None,
) -> int:
    """Put what is to be told of the changes; returns how many notifications that were.

    Repeating it for a change adds nothing. Needs a writing transaction.
    """
    all_of_them = tuple(changes)
    parts = _parts(all_of_them)
    added = 0
    for change in all_of_them:
        for output in _for_people(outputs):
            told = _told(connection, change, parts[change.incident.id], output, external_url)
            if told is None:
                continue
            if told.is_resolved and outbox.was_told(connection, output.name, told.incident_id):
                silences.drop_held(connection, output.name, told, QUIET)
            added += outbox.put(connection, output.name, [told])
    return added


def _parts(changes: Iterable[Change]) -> defaultdict[str | None, list[str]]:
    """Return, by incident, those that become part of it."""
    parts: defaultdict[str | None, list[str]] = defaultdict(list)
    for change in changes:
        if change.kind is ChangeKind.MERGED:
            parts[change.incident.merged_into].append(change.incident.id)
    return parts


def _told(
    connection: Connection,
    change: Change,
    parts: Sequence[str],
    output: OutputSettings,
    external_url: str | None,
) -> Notification | None:
    """Return what an output is told of a change, if it is.

    The first that it is told of an incident opens it there. Who knows one of the `parts`, incidents
    that become part of this one, is told of what goes on.
    """
    kind = TOLD.get(change.kind)
    knows = outbox.has_any(connection, output.name, change.incident.id)
    if knows:
        return None if kind is None else _notification(change, kind, output.name, external_url)
    if kind in FOLLOW_UPS:
        return None
    first = Kind.REOPENED if kind is Kind.REOPENED else Kind.OPENED
    told = _notification(change, first, output.name, external_url)
    knows_part = any(outbox.has_any(connection, output.name, part) for part in parts)
    return told if knows_part or wants(output.when, told) else None


def announce_gone(
    connection: Connection, gone: str, *, outputs: Sequence[OutputSettings], at_ms: int
) -> None:
    """Tell the other outputs that one of them wants nothing any more."""
    for output in _for_people(outputs):
        if output.name != gone:
            told = monitor_notification(
                Kind.DEGRADED,
                output.name,
                title=f"The receiver of output {gone} is gone (410): nothing is sent to it.",
                reason="mend its settings and restart the api; until then alerts for it wait",
                at_ms=at_ms,
            )
            outbox.put(connection, output.name, [told])


def announce_heartbeats(
    connection: Connection,
    beats: Iterable[Heartbeat],
    *,
    outputs: Sequence[OutputSettings],
    now_ms: int,
) -> None:
    """Tell the outputs for heartbeats that one has arrived; an old one says nothing about now."""
    sent_ms = max((beat.sent_ms for beat in beats), default=0)
    if now_ms - sent_ms > FRESH_MS:
        return
    for output in outputs:
        if output.heartbeats:
            told = monitor_notification(
                Kind.HEARTBEAT,
                output.name,
                title="A heartbeat has come through sidecar, stream, worker and api.",
                reason="heartbeats arrive",
                at_ms=now_ms,
            )
            a_minute = notification_id(output.name, Kind.HEARTBEAT, now_ms // MINUTE_MS)
            outbox.put(connection, output.name, [msgspec.structs.replace(told, id=a_minute)])


def monitor_notification(
    kind: Kind, output: str, *, title: str, reason: str, at_ms: int
) -> Notification:
    """Return a notification about the monitor itself, which belongs to no incident."""
    return Notification(
        id=notification_id(output, f"{kind}/{title}", at_ms),
        kind=kind,
        incident_id="",
        sequence=0,
        created_at_ms=at_ms,
        severity=Severity.HIGH if kind is Kind.DEGRADED else Severity.INFO,
        confidence=Confidence.HIGH,
        rules=(),
        kv_pools=(),
        tenants=(),
        finding_count=0,
        opened_at_ms=at_ms,
        last_seen_ms=at_ms,
        title=title,
        reason=reason,
    )


def _for_people(outputs: Sequence[OutputSettings]) -> list[OutputSettings]:
    return [output for output in outputs if not output.heartbeats]


def notification_id(output: str, subject: str, number: int) -> str:
    """Return an idempotency id: the same for the same output, subject and number."""
    return "ntf-" + xxhash.xxh3_128_hexdigest(f"{output}\0{subject}\0{number}".encode())


def _notification(
    change: Change, kind: Kind, output: str, external_url: str | None
) -> Notification:
    incident = change.incident
    link = None if external_url is None else f"{external_url.rstrip('/')}/incidents/{incident.id}"
    return Notification(
        id=notification_id(output, incident.id, incident.version),
        kind=kind,
        incident_id=incident.id,
        sequence=incident.version,
        created_at_ms=change.at_ms,
        severity=incident.severity,
        confidence=incident.confidence,
        rules=incident.rules,
        kv_pools=incident.kv_pools,
        tenants=incident.tenants,
        finding_count=incident.finding_count,
        opened_at_ms=incident.opened_at_ms,
        last_seen_ms=incident.last_seen_ms,
        resolved_at_ms=incident.resolved_at_ms,
        title=incident.title,
        reason=change.reason,
        link=link,
    )
