"""The native form: `{type, timestamp, data}`, as Standard Webhooks recommends for a payload."""

from typing import Any, Final

import msgspec

from exporters.outputs.formats.times import rfc3339
from exporters.outputs.notification import Notification

MOST_TENANTS: Final = 100
"""Tenants that are listed: with ids of 128 characters the payload stays below the 20 kB that
Standard Webhooks recommends. `tenant_count` is of all."""


def document(notification: Notification) -> dict[str, Any]:
    """Return the payload as JSON types. `timestamp` is when the incident changed."""
    return {
        "type": str(notification.kind),
        "timestamp": rfc3339(notification.created_at_ms),
        "data": {
            "id": notification.id,
            "incident": notification.incident_id or None,
            "sequence": notification.sequence,
            "severity": str(notification.severity),
            "confidence": str(notification.confidence),
            "rules": list(notification.rules),
            "kv_pools": list(notification.kv_pools),
            "tenants": list(notification.tenants[:MOST_TENANTS]),
            "tenant_count": len(notification.tenants),
            "finding_count": notification.finding_count,
            "opened_at": rfc3339(notification.opened_at_ms),
            "last_seen_at": rfc3339(notification.last_seen_ms),
            "resolved_at": None
            if notification.resolved_at_ms is None
            else rfc3339(notification.resolved_at_ms),
            "title": notification.title,
            "reason": notification.reason,
            "link": notification.link,
        },
    }


def encode(notification: Notification) -> bytes:
    """Return the payload as JSON in one line, the same bytes for the same notification."""
    return msgspec.json.encode(document(notification))
