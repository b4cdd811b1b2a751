"""What an incident is, and a change of one: findings that belong together, with a life cycle.

An incident's aggregates (lead, times, count, pools, rules, tenants) depend on which findings it
has, never on the order in which they came.
"""

import enum
from typing import Final

import msgspec

from detector.finding import Confidence, Finding, Severity

MAX_TENANTS: Final = 1000
"""Names kept of an incident's tenants, the first in order: more fill no page and no message."""


class State(enum.StrEnum):
    """Where an incident is in its life. Open and re-opened ones become resolved by silence."""

    OPEN = "open"
    """One finding so far."""
    ONGOING = "ongoing"
    """More findings have come."""
    RESOLVED = "resolved"
    REOPENED = "reopened"
    """Findings have come after it was resolved."""
    MERGED = "merged"
    """A finding has shown that it is part of another one."""


ACTIVE: Final = frozenset({State.OPEN, State.ONGOING, State.REOPENED})


class ChangeKind(enum.StrEnum):
    """What a change is about; of several things at once the first in this order."""

    OPENED = "opened"
    REOPENED = "reopened"
    SEVERITY_RAISED = "severity_raised"
    RULE_ADDED = "rule_added"
    ONGOING = "ongoing"
    RESOLVED = "resolved"
    MERGED = "merged"
    ACKNOWLEDGED = "acknowledged"


class Lead(msgspec.Struct, frozen=True, kw_only=True):
    """The gravest finding of an incident, of equal ones the surest, then the earliest."""

    finding_id: str
    rule: str
    severity: Severity
    confidence: Confidence
    kv_pool: str
    observed_from_ms: int
    explanation: str

    @property
    def order(self) -> tuple[int, int, int, str]:
        """The gravest has the smallest."""
        return (
            -self.severity.rank,
            -confidence_rank(self.confidence),
            self.observed_from_ms,
            self.finding_id,
        )


class Incident(msgspec.Struct, frozen=True, kw_only=True):
    """Findings that belong together.

    `opened_at_ms` and `last_seen_ms` are event times: of its first finding and of its last.
    `created_at_ms`, `heard_at_ms` and the others are by the clock of whoever keeps it: made, last
    news, resolved, acknowledged. `id` is that of the finding that made it, with a prefix. Lists
    are sorted. `version` is the number of its changes.
    """

    id: str
    state: State
    lead: Lead
    opened_at_ms: int
    last_seen_ms: int
    created_at_ms: int
    heard_at_ms: int
    finding_count: int
    kv_pools: tuple[str, ...]
    rules: tuple[str, ...]
    tenants: tuple[str, ...]
    version: int
    resolved_at_ms: int | None = None
    acknowledged_at_ms: int | None = None
    acknowledged_by: str | None = None
    merged_into: str | None = None

    @property
    def severity(self) -> Severity:
        """That of its gravest finding."""
        return self.lead.severity

    @property
    def confidence(self) -> Confidence:
        """That of its gravest finding."""
        return self.lead.confidence

    @property
    def kv_pool(self) -> str:
        """That of its gravest finding."""
        return self.lead.kv_pool

    @property
    def title(self) -> str:
        """The sentence of its gravest finding."""
        return self.lead.explanation

    @property
    def is_active(self) -> bool:
        """True while it is neither resolved nor part of another one."""
        return self.state in ACTIVE


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change: the incident as it is after it, why, and who asked for it (None: nobody).

    `incident.version` is its number among the incident's changes, from 1.
    """

    incident: Incident
    kind: ChangeKind
    at_ms: int
    reason: str
    by: str | None = None


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """A finding as incidents see it, with the span of event time of all its versions."""

    finding: Finding
    from_ms: int
    until_ms: int

    @property
    def counts(self) -> bool:
        """True if it makes an incident by itself; see `counts_alone`."""
        return counts_alone(self.finding.severity, self.finding.confidence)

    @property
    def lead(self) -> Lead:
        """What of it an incident shows if it is the gravest."""
        finding = self.finding
        return Lead(
            finding_id=finding.id,
            rule=finding.rule,
            severity=finding.severity,
            confidence=finding.confidence,
            kv_pool=finding.kv_pool,
            observed_from_ms=self.from_ms,
            explanation=finding.explanation,
        )

    @property
    def tenants(self) -> frozenset[str]:
        """Whose content it is about, and who received it; nobody if it is about an engine."""
        return frozenset({self.finding.sink.tenant, self.finding.source.tenant} - {""})


def counts_alone(severity: Severity, confidence: Confidence) -> bool:
    """True for findings that make an incident: sure and at least medium, or grave.

    Weaker ones are stored, and are part of an incident if it has a finding about the same request.
    Medium content findings are left out because clean recorded traffic has them, eight an hour,
    and no sure ones; evidence of the pool makes them grave.
    """
    grave = severity.rank >= Severity.HIGH.rank
    return grave or (severity is Severity.MEDIUM and confidence is Confidence.HIGH)


def confidence_rank(confidence: Confidence) -> int:
    """Position in the rising order, 0 for low."""
    return list(Confidence).index(confidence)
