"""The life of an incident: opened, ongoing, resolved, re-opened, merged; each change says why.

Pure: `now_ms` is the clock of whoever keeps the incidents. Severity never falls. An acknowledgement
ends when the incident becomes graver or is opened again, and the change says so.
"""

from collections.abc import Iterable, Sequence

import msgspec

from exporters.incidents.model import (
    MAX_TENANTS,
    Change,
    ChangeKind,
    Incident,
    Observed,
    State,
    confidence_rank,
)


def opened(observed: Observed, *, now_ms: int) -> Change:
    """Return the first change of a new incident."""
    finding = observed.finding
    incident = Incident(
        id=f"inc-{finding.id}",
        state=State.OPEN,
        lead=observed.lead,
        opened_at_ms=observed.from_ms,
        last_seen_ms=observed.until_ms,
        created_at_ms=now_ms,
        heard_at_ms=now_ms,
        finding_count=1,
        kv_pools=(finding.kv_pool,),
        rules=(finding.rule,),
        tenants=tuple(sorted(observed.tenants)),
        version=1,
    )
    reason = f"first finding, of {finding.rule}"
    return Change(incident=incident, kind=ChangeKind.OPENED, at_ms=now_ms, reason=reason)


def told(
    incident: Incident,
    observed: Observed,
    *,
    is_new: bool,
    merged: Sequence[Incident] = (),
    now_ms: int,
) -> tuple[Incident, list[Change]]:
    """Return an incident after a finding, and what is worth telling.

    `is_new` is False for a surer version of a finding that it has. `merged` are incidents that the
    finding has shown to be part of this one: each gets a change of its own.
    """
    after = _with(incident, observed, is_new=is_new, now_ms=now_ms)
    for other in merged:
        after = _united(after, other)
    happened = _happened(incident, after, observed, merged)
    if not happened:
        return after, []
    ends_acknowledgement = bool(happened.keys() & _GRAVE) and after.acknowledged_at_ms is not None
    reasons = list(happened.values())
    if ends_acknowledgement:
        reasons.append("so it needs to be acknowledged again")
    after = msgspec.structs.replace(
        after,
        state=_next(after),
        version=incident.version + 1,
        resolved_at_ms=None,
        acknowledged_at_ms=None if ends_acknowledgement else after.acknowledged_at_ms,
        acknowledged_by=None if ends_acknowledgement else after.acknowledged_by,
    )
    kind = next(kind for kind in ChangeKind if kind in happened)
    change = Change(incident=after, kind=kind, at_ms=now_ms, reason="; ".join(reasons))
    return after, [change, *(_absorbed(other, after, now_ms) for other in merged)]


def reworded(incident: Incident, observed: Observed) -> Incident:
    """Return an incident after a version of a finding that says the same in other words."""
    if observed.finding.id != incident.lead.finding_id:
        return incident
    return msgspec.structs.replace(incident, lead=observed.lead)


def resolved(incident: Incident, *, quiet_ms: int, now_ms: int) -> Change:
    """Return the change of an active incident that has been quiet."""
    after = msgspec.structs.replace(
        incident, state=State.RESOLVED, resolved_at_ms=now_ms, version=incident.version + 1
    )
    reason = f"no news for {_span(quiet_ms)}"
    return Change(incident=after, kind=ChangeKind.RESOLVED, at_ms=now_ms, reason=reason)


def closed(incident: Incident, *, by: str, reason: str, now_ms: int) -> Change:
    """Return the change of an active incident that somebody has ended; `reason` is theirs.

    News opens it again, as if it had been quiet.
    """
    after = msgspec.structs.replace(
        incident, state=State.RESOLVED, resolved_at_ms=now_ms, version=incident.version + 1
    )
    return Change(incident=after, kind=ChangeKind.RESOLVED, at_ms=now_ms, reason=reason, by=by)


def acknowledged(incident: Incident, *, by: str, reason: str, now_ms: int) -> Change:
    """Return the change of an incident that somebody takes care of; `reason` is theirs."""
    after = msgspec.structs.replace(
        incident, acknowledged_at_ms=now_ms, acknowledged_by=by, version=incident.version + 1
    )
    kind = ChangeKind.ACKNOWLEDGED
    return Change(incident=after, kind=kind, at_ms=now_ms, reason=reason, by=by)


_GRAVE = frozenset({ChangeKind.REOPENED, ChangeKind.SEVERITY_RAISED})


def _next(incident: Incident) -> State:
    """Return the state of an incident with news."""
    if incident.state is State.RESOLVED:
        return State.REOPENED
    if incident.state is State.OPEN and incident.finding_count > 1:
        return State.ONGOING
    return incident.state


def _happened(
    before: Incident, after: Incident, observed: Observed, merged: Sequence[Incident]
) -> dict[ChangeKind, str]:
    rule = observed.finding.rule
    happened: dict[ChangeKind, str] = {}
    if before.state is State.RESOLVED:
        happened[ChangeKind.REOPENED] = f"news of {rule} after it was resolved"
    if after.severity.rank > before.severity.rank:
        grows = f"{before.severity} to {after.severity}"
        happened[ChangeKind.SEVERITY_RAISED] = f"severity from {grows} by {after.lead.rule}"
    if added := sorted(set(after.rules) - set(before.rules)):
        happened[ChangeKind.RULE_ADDED] = f"first finding of {', '.join(added)}"
    if before.state is State.OPEN and after.finding_count > before.finding_count:
        happened[ChangeKind.ONGOING] = f"a further finding, of {rule}"
    if merged:
        names = ", ".join(other.id for other in merged)
        happened.setdefault(ChangeKind.ONGOING, f"a finding of {rule} joins it with {names}")
    if grown := _grown(before, after):
        first = [happened[ChangeKind.ONGOING]] if ChangeKind.ONGOING in happened else []
        happened[ChangeKind.ONGOING] = "; ".join([*first, *grown])
    return happened


def _grown(before: Incident, after: Incident) -> list[str]:
    """Return how an incident reaches further: outputs may ask for what it has only now.

    Tenants are counted, not named: reasons stay when a tenant is erased.
    """
    grown = []
    if confidence_rank(after.confidence) > confidence_rank(before.confidence):
        grown.append(f"confidence from {before.confidence} to {after.confidence}")
    for what, old, new in (
        ("tenant", before.tenants, after.tenants),
        ("KV pool", before.kv_pools, after.kv_pools),
    ):
        if more := len(set(new) - set(old)):
            grown.append(f"{more} further {what}{'s' if more > 1 else ''}")
    return grown


def _with(incident: Incident, observed: Observed, *, is_new: bool, now_ms: int) -> Incident:
    same = observed.finding.id == incident.lead.finding_id
    lead = observed.lead
    return msgspec.structs.replace(
        incident,
        lead=lead if same else min(incident.lead, lead, key=lambda one: one.order),
        opened_at_ms=min(incident.opened_at_ms, observed.from_ms),
        last_seen_ms=max(incident.last_seen_ms, observed.until_ms),
        heard_at_ms=max(incident.heard_at_ms, now_ms),
        finding_count=incident.finding_count + is_new,
        kv_pools=_union(incident.kv_pools, (observed.finding.kv_pool,)),
        rules=_union(incident.rules, (observed.finding.rule,)),
        tenants=_union(incident.tenants, observed.tenants)[:MAX_TENANTS],
    )


def _united(incident: Incident, other: Incident) -> Incident:
    return msgspec.structs.replace(
        incident,
        lead=min(incident.lead, other.lead, key=lambda one: one.order),
        opened_at_ms=min(incident.opened_at_ms, other.opened_at_ms),
        last_seen_ms=max(incident.last_seen_ms, other.last_seen_ms),
        finding_count=incident.finding_count + other.finding_count,
        kv_pools=_union(incident.kv_pools, other.kv_pools),
        rules=_union(incident.rules, other.rules),
        tenants=_union(incident.tenants, other.tenants)[:MAX_TENANTS],
    )


def _absorbed(incident: Incident, into: Incident, now_ms: int) -> Change:
    after = msgspec.structs.replace(
        incident,
        state=State.MERGED,
        merged_into=into.id,
        resolved_at_ms=now_ms,
        version=incident.version + 1,
    )
    reason = f"part of {into.id}"
    return Change(incident=after, kind=ChangeKind.MERGED, at_ms=now_ms, reason=reason)


def _span(span_ms: int) -> str:
    return f"{span_ms // 60_000} min" if span_ms % 60_000 == 0 else f"{span_ms / 1000:g} s"


def _union(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*one, *other}))
