"""What is sent: the state of one incident at one change of it, as ids, counts and one sentence.

Whatever an output sends is made from this and nothing else, so no output can send tenant text.
"""

import enum

import msgspec

from detector.finding import Confidence, Severity


class Kind(enum.StrEnum):
    """What happened, as the type of the event that is sent (Standard Webhooks: dotted words)."""

    OPENED = "incident.opened"
    UPDATED = "incident.updated"
    REOPENED = "incident.reopened"
    ACKNOWLEDGED = "incident.acknowledged"
    RESOLVED = "incident.resolved"
    DEGRADED = "monitor.degraded"
    HEARTBEAT = "monitor.heartbeat"
    TEST = "test.ping"


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """One change of one incident.

    `id` is the idempotency id: repeats of the same notification carry the same one, and it is
    another for each output. `sequence` rises within an incident, and an output is told in that
    order. `tenants` are those whose content surfaced or who received it. `title` is one plain
    sentence, `reason` says why this is sent now. Times are Unix milliseconds. One that is about the
    monitor itself has no incident: its `incident_id` is empty.
    """

    id: str
    kind: Kind
    incident_id: str
    sequence: int
    created_at_ms: int
    severity: Severity
    confidence: Confidence
    rules: tuple[str, ...]
    kv_pools: tuple[str, ...]
    tenants: tuple[str, ...]
    finding_count: int
    opened_at_ms: int
    last_seen_ms: int
    title: str
    reason: str
    resolved_at_ms: int | None = None
    link: str | None = None

    @property
    def is_resolved(self) -> bool:
        """Whether nothing is to be done any more."""
        return self.kind is Kind.RESOLVED
