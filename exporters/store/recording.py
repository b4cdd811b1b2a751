"""Findings into incidents, in the transaction of the caller: what they change, in order.

What is told twice, or in another order, leaves the same incidents.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec
from sqlalchemy import Connection

from detector.finding import Finding
from exporters.incidents import lifecycle
from exporters.incidents.grouping import Place, covering, place, survivor
from exporters.incidents.model import Change, Incident, Observed
from exporters.incidents.settings import IncidentSettings
from exporters.incidents.versions import is_news, put_together
from exporters.store import digests, retention
from exporters.store import findings as finding_rows
from exporters.store import incidents as incident_rows

Announce = Callable[[Connection, Sequence[Change]], object]
"""Told of the changes of incidents inside the transaction that makes them."""


class Recorded(NamedTuple):
    """What findings have changed. Of the findings so many were new, surer, or known before."""

    changes: tuple[Change, ...] = ()
    new: int = 0
    updated: int = 0
    repeated: int = 0


def record_findings(
    connection: Connection,
    findings: Iterable[Finding],
    settings: IncidentSettings,
    *,
    now_ms: int,
) -> Recorded:
    """Store findings and what they make of incidents; `now_ms` is wall time."""
    changes: list[Change] = []
    new = updated = repeated = 0
    for told in findings:
        finding = msgspec.structs.replace(told, digests=None)
        known = finding_rows.finding(connection, finding.id)
        if known is None:
            at_ms = finding.observed_at_ms
            observed = Observed(finding=finding, from_ms=at_ms, until_ms=at_ms)
            changes += _place(connection, observed, None, settings, now_ms)
            _keep_digests(connection, told)
            new += 1
            continue
        observed = put_together(known.observed, finding)
        if observed is known.observed:
            repeated += 1
        elif is_news(known.observed, observed):
            changes += _place(connection, observed, known.incident_id, settings, now_ms)
            if finding.rule != known.observed.finding.rule:
                _rename_rules(connection, finding.id)
            updated += 1
        else:
            _reword(connection, observed, known.incident_id)
            repeated += 1
        _keep_digests(connection, told)
    return Recorded(tuple(changes), new, updated, repeated)


def _keep_digests(connection: Connection, told: Finding) -> None:
    if told.digests is not None:
        digests.put(connection, told.id, told.digests)


def resolve_quiet(
    connection: Connection, settings: IncidentSettings, *, now_ms: int
) -> tuple[Change, ...]:
    """Resolve the incidents that nothing was heard of for long enough."""
    quiet_ms = settings.quiet_ms
    found = incident_rows.quiet(connection, heard_before_ms=now_ms - quiet_ms)
    changes = [lifecycle.resolved(one, quiet_ms=quiet_ms, now_ms=now_ms) for one in found]
    for change in changes:
        incident_rows.put_change(connection, change)
    return tuple(changes)


def acknowledge(
    connection: Connection, incident_id: str, *, by: str, reason: str, now_ms: int
) -> Change | None:
    """Note that somebody takes care of an active incident; None if there is no such incident."""
    incident = incident_rows.incident(connection, incident_id)
    if incident is None or not incident.is_active:
        return None
    change = lifecycle.acknowledged(incident, by=by, reason=reason, now_ms=now_ms)
    incident_rows.put_change(connection, change)
    return change


def _place(
    connection: Connection,
    observed: Observed,
    current: str | None,
    settings: IncidentSettings,
    now_ms: int,
) -> list[Change]:
    join_ms = settings.join_ms
    spans = incident_rows.spans_near(connection, observed, join_ms=join_ms)
    near = finding_rows.neighbours(connection, observed, join_ms=join_ms)
    where = place(observed, spans=spans, neighbours=near, current=current)
    if not where.incident_ids and not observed.counts:
        finding_rows.put(connection, observed, None)
        return []
    incident, changes = (
        _joined(connection, observed, where, is_new=current is None, now_ms=now_ms)
        if where.incident_ids
        else _opened(connection, observed, now_ms)
    )
    finding_rows.put(connection, observed, incident.id)
    if observed.counts:
        new = covering(observed, where.spans, incident.id)
        incident_rows.replace_spans(connection, where.spans, new)
    for weak in finding_rows.adopt(connection, where.adopted, incident.id):
        incident, further = lifecycle.told(incident, weak, is_new=True, now_ms=now_ms)
        _write(connection, incident, further)
        changes += further
    return changes


def _opened(
    connection: Connection, observed: Observed, now_ms: int
) -> tuple[Incident, list[Change]]:
    change = lifecycle.opened(observed, now_ms=now_ms)
    incident_rows.put_change(connection, change)
    return change.incident, [change]


def _joined(
    connection: Connection, observed: Observed, where: Place, *, is_new: bool, now_ms: int
) -> tuple[Incident, list[Change]]:
    found = incident_rows.incidents_of(connection, where.incident_ids)
    kept = survivor(found)
    others = sorted((one for one in found if one.id != kept.id), key=lambda one: one.id)
    incident, changes = lifecycle.told(kept, observed, is_new=is_new, merged=others, now_ms=now_ms)
    _write(connection, incident, changes)
    if others:
        names = [other.id for other in others]
        finding_rows.move(connection, names, kept.id)
        incident_rows.move_spans(connection, names, kept.id)
        retention.extend_holds(connection, names, to=kept.id)
    return incident, changes


def _write(connection: Connection, incident: Incident, changes: list[Change]) -> None:
    if not changes:
        incident_rows.put(connection, incident)
    for change in changes:
        incident_rows.put_change(connection, change)


def _rename_rules(connection: Connection, finding_id: str) -> None:
    """Name the rules of an incident anew: the surest version of a finding may be of another one."""
    stored = finding_rows.finding(connection, finding_id)
    if stored is None or stored.incident_id is None:
        return
    rules = finding_rows.rules_of(connection, stored.incident_id)
    for incident in incident_rows.incidents_of(connection, [stored.incident_id]):
        incident_rows.put(connection, msgspec.structs.replace(incident, rules=rules))


def _reword(connection: Connection, observed: Observed, incident_id: str | None) -> None:
    finding_rows.put(connection, observed, incident_id)
    if incident_id is not None:
        for incident in incident_rows.incidents_of(connection, [incident_id]):
            incident_rows.put(connection, lifecycle.reworded(incident, observed))
