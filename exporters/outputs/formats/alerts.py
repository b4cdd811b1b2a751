"""An incident as an alert in the words of Prometheus: labels that identify, annotations that tell.

Labels stay the same while an incident lasts, except its severity: a graver one is another alert,
and the earlier one ends by itself because it is not told again.
"""

from typing import Final

from detector.finding import Severity
from exporters.outputs.formats.times import rfc3339
from exporters.outputs.notification import Kind, Notification

ALERT_NAME: Final = "BleedwatchIncident"

HEARTBEAT_NAME: Final = "BleedwatchHeartbeat"
"""Fires as long as heartbeats arrive: its absence is the alarm."""

SEVERITIES: Final = {
    Severity.INFO: "info",
    Severity.LOW: "warning",
    Severity.MEDIUM: "warning",
    Severity.HIGH: "critical",
    Severity.CRITICAL: "critical",
}
"""Ours in the three words that alert rules for Prometheus use; both are labels."""

MOST_TENANTS: Final = 20
"""Tenants that an annotation lists: people read it."""

STILL_OPEN: Final = "0001-01-01T00:00:00Z"
"""The end of an alert that has none yet: the zero time of the language Alertmanager is made in."""


def labels(notification: Notification) -> dict[str, str]:
    """Return what identifies the alert; all heartbeats are one."""
    if notification.kind is Kind.HEARTBEAT:
        return {"alertname": HEARTBEAT_NAME, "severity": "info"}
    return {
        "alertname": ALERT_NAME,
        "incident": notification.incident_id or notification.id,
        "severity": SEVERITIES[notification.severity],
        "bleedwatch_severity": str(notification.severity),
    }


def annotations(notification: Notification) -> dict[str, str]:
    """Return what tells people; changes with every notification."""
    tenants = ", ".join(notification.tenants[:MOST_TENANTS])
    more = len(notification.tenants) - MOST_TENANTS
    told = {
        "summary": notification.title,
        "description": notification.reason,
        "rules": ", ".join(notification.rules),
        "kv_pools": ", ".join(notification.kv_pools),
        "tenants": tenants + (f" and {more} more" if more > 0 else ""),
        "confidence": str(notification.confidence),
        "findings": str(notification.finding_count),
        "notification_id": notification.id,
    }
    return {name: text for name, text in told.items() if text}


def ended_at(notification: Notification) -> str | None:
    """Return when the incident was resolved; None while it is not."""
    if not notification.is_resolved:
        return None
    resolved = notification.resolved_at_ms
    return rfc3339(notification.created_at_ms if resolved is None else resolved)
