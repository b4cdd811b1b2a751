"""Findings for tests of incidents, small enough to read: pools are letters, times are seconds."""

from typing import Any

import msgspec

from detector.finding import NO_OVERLAP, Confidence, Finding, Party, Severity
from exporters.incidents.settings import IncidentSettings
from tests.unit.findings import evidence

SETTINGS = IncidentSettings(join_ms=100_000, quiet_ms=20_000)
"""Findings at most 100 s apart are together; 20 s of silence resolve."""


def found(
    name: str,
    at_s: float,
    *,
    pool: str = "a",
    rule: str = "BW001",
    severity: Severity = Severity.HIGH,
    confidence: Confidence = Confidence.HIGH,
    request: str | None = None,
    sink: str = "globex",
    source: str = "acme",
    **more: Any,
) -> Finding:
    """Return a finding; each is about a request of its own unless `request` names one."""
    at_ms = int(at_s * 1000)
    one = Finding(
        id=name,
        rule=rule,
        severity=severity,
        confidence=confidence,
        kv_pool=pool,
        engine="engine-1",
        model="m",
        observed_at_ms=at_ms,
        detected_at_ms=at_ms + 1,
        sink=_party(sink, f"req-{name}" if request is None else request, at_ms),
        source=_party(source, f"src-{name}", at_ms),
        other_sources=(),
        evidence=evidence() if rule.startswith("BW0") else NO_OVERLAP,
        explanation=f"Finding {name} of {rule}.",
    )
    return msgspec.structs.replace(one, **more)


def about_engine(name: str, at_s: float, *, rule: str = "BW202", **more: Any) -> Finding:
    """Return a finding about an engine: no tenant, no request."""
    return found(name, at_s, rule=rule, request="", sink="", source="", **more)


def _party(tenant: str, request: str, at_ms: int) -> Party:
    return Party(
        tenant=tenant,
        request_id=request,
        kind="response",
        started_at_ms=at_ms - 1000,
        ended_at_ms=at_ms,
    )
