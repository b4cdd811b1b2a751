"""What people do to incidents, findings and silences: a transaction each, announced like others."""

from collections.abc import Callable, Sequence
from http import HTTPStatus

import xxhash

from exporters.http.parts import Parts
from exporters.http.problems import ProblemError, no_such
from exporters.incidents import lifecycle
from exporters.incidents.model import Change, Incident, State
from exporters.store import erasure, incidents, retention, silences, verdicts
from exporters.store.silences import Silence, Silenced
from exporters.store.verdicts import Verdict

HOLD_MARGIN_MS = 900_000
"""What a hold keeps before and after an incident: the window and the longest response."""


def acknowledge(parts: Parts, incident_id: str, *, by: str, reason: str) -> Incident:
    """Note that somebody takes care of an incident; again by somebody else, too."""

    def change(incident: Incident, now_ms: int) -> Change:
        return lifecycle.acknowledged(
            incident, by=by, reason=reason or f"acknowledged by {by}", now_ms=now_ms
        )

    return _changed(parts, incident_id, change)


def resolve(parts: Parts, incident_id: str, *, by: str, reason: str) -> Incident:
    """End an incident; news opens it again."""

    def change(incident: Incident, now_ms: int) -> Change:
        if not incident.is_active:
            raise ProblemError(HTTPStatus.CONFLICT, "state", "the incident is resolved already")
        return lifecycle.closed(
            incident, by=by, reason=reason or f"resolved by {by}", now_ms=now_ms
        )

    return _changed(parts, incident_id, change)


def silence(parts: Parts, about: Silenced, *, by: str, comment: str, minutes: int) -> Silence:
    """Hold back what is sent of what matches, from now on for some minutes."""
    now_ms = parts.now_ms()
    name = f"{by}\0{now_ms}\0{about!r}".encode()
    made = Silence(
        id=f"sil-{xxhash.xxh3_128_hexdigest(name)}",
        about=about,
        starts_at_ms=now_ms,
        ends_at_ms=now_ms + minutes * 60_000,
        by=by,
        comment=comment,
    )
    with parts.database.write() as connection:
        known = incidents.incidents_of(connection, about.incidents)
        if len(known) < len(about.incidents):
            raise no_such("incident")
        silences.add(connection, made)
    return made


def end_silence(parts: Parts, silence_id: str) -> None:
    """End a silence now."""
    with parts.database.write() as connection:
        if not silences.end(connection, silence_id, now_ms=parts.now_ms()):
            raise no_such("silence that still holds")
    parts.on_change()


def hold(parts: Parts, incident_id: str, *, held: bool) -> None:
    """Keep an incident and the requests around it from retention and erasure, or no more."""
    with parts.database.write() as connection:
        if incidents.incident(connection, incident_id) is None:
            raise no_such("incident")
        if held:
            retention.hold(connection, incident_id, margin_ms=HOLD_MARGIN_MS)
        else:
            retention.release(connection, incident_id)


def give_verdict(parts: Parts, finding_id: str, verdict: Verdict, *, by: str) -> None:
    """Write what somebody has decided about a finding."""
    with parts.database.write() as connection:
        if not verdicts.give_verdict(connection, finding_id, verdict, by=by, now_ms=parts.now_ms()):
            raise no_such("finding")


def erase(parts: Parts, tenant: str) -> erasure.Erasure:
    """Erase what the store holds of a tenant."""
    with parts.database.write() as connection:
        return erasure.erase_tenant(connection, tenant)


def _changed(parts: Parts, incident_id: str, change: Callable[[Incident, int], Change]) -> Incident:
    with parts.database.write() as connection:
        incident = incidents.incident(connection, incident_id)
        if incident is None:
            raise no_such("incident")
        if incident.state is State.MERGED:
            detail = f"it is part of {incident.merged_into}"
            raise ProblemError(HTTPStatus.CONFLICT, "merged", detail)
        made = change(incident, parts.now_ms())
        incidents.put_change(connection, made)
        changes: Sequence[Change] = (made,)
        parts.announce(connection, changes)
    parts.on_change()
    return made.incident
