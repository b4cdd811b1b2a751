"""Instants as RFC 3339 writes them, in UTC."""

from datetime import UTC, datetime


def rfc3339(at_ms: int) -> str:
    """Return Unix milliseconds as in `2026-01-31T10:00:00.250Z`."""
    text = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")
