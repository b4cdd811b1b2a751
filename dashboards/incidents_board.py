"""The drill-down into incidents: what was found, what engines did meanwhile, and who was told."""

from typing import Final

from dashboards import thresholds
from dashboards.alerts import ABOUT_TENANTS, ARRIVED, SENT
from dashboards.engine_panels import KEY_FIGURES, SEEN, TRANSFERS
from dashboards.panels import Panel, Query, Row, rates
from dashboards.queries import rate, rise

STATES: Final = (
    Panel(
        title="By state",
        description="Incidents in the store by state.",
        queries=(Query(expr="sum by (state) (bleedwatch_incidents)", legend="{{state}}"),),
        kind="bargauge",
        no_value="none yet",
    ),
    Panel(
        title="Changes",
        description="Opened, gone on, graver, resolved, opened again.",
        queries=(
            Query(expr=rise("bleedwatch_incident_changes_total", by="kind"), legend="{{kind}}"),
        ),
        width=16,
        no_value="none yet",
    ),
)

FOUND: Final = (
    Panel(
        title="Findings, last 24 hours",
        description="By rule, severity and confidence.",
        queries=(Query(expr=f"{rise(ABOUT_TENANTS, '24h', by='rule, severity, confidence')} > 0"),),
        kind="table",
        width=12,
        no_value="none",
    ),
    rates(
        "What explained overlaps",
        "Shingles that another tenant has shown, by what explains them.",
        "bleedwatch_explained_shingles_total",
        "reason",
        width=12,
    ),
)

TOLD: Final = (
    Panel(
        title="Notifications",
        description="Notifications in the store by output and state.",
        queries=(
            Query(
                expr="sum by (output, state) (bleedwatch_outbox_notifications)",
                legend="{{output}}: {{state}}",
            ),
        ),
        width=12,
        no_value="no outputs",
        runbook="BleedwatchOutputFailing",
    ),
    Panel(
        title="Failing outputs",
        description="1 while what is sent to an output does not arrive.",
        queries=(Query(expr="max by (output) (bleedwatch_output_failing)", legend="{{output}}"),),
        width=12,
        alarm_at=1,
        no_value="no outputs",
        runbook="BleedwatchOutputFailing",
    ),
    Panel(
        title="Age of heartbeats",
        description="How long ago the newest synthetic bleed that came through was made, and the "
        "newest that a sidecar made: while it grows, a real one would not be told either.",
        queries=(
            Query(expr=f"time() - max({ARRIVED})", legend="arrived"),
            Query(expr=f"time() - max({SENT})", legend="sent"),
        ),
        unit="s",
        width=12,
        alarm_at=thresholds.HEARTBEAT_SECONDS,
        no_value="switched off",
        runbook="BW902",
    ),
)

KEPT: Final = (
    rates(
        "Findings recorded",
        "New ones, surer versions, and repeats that change nothing.",
        "bleedwatch_api_findings_total",
        "outcome",
        width=6,
    ),
    Panel(
        title="Rows of requests",
        description="Rows recorded per second, and records that could not be read.",
        queries=(
            Query(expr=rate("bleedwatch_api_requests_total"), legend="recorded"),
            Query(expr=rate("bleedwatch_api_refused_total", "reason"), legend="{{reason}}"),
        ),
        unit="ops",
        width=6,
    ),
    Panel(
        title="Not recorded yet",
        description="Records that the api has still to read, by topic.",
        queries=(Query(expr="sum by (topic) (bleedwatch_api_lag_records)", legend="{{topic}}"),),
        width=6,
    ),
    Panel(
        title="Store failures",
        description="Times the store could not be used: what was read waits and is written again.",
        queries=(Query(expr=rise("bleedwatch_api_store_failures_total"), legend="failures"),),
        width=6,
        alarm_at=1,
        runbook="BleedwatchStoreAway",
    ),
)

INCIDENTS: Final = (
    Row("Incidents", STATES),
    Row("What was found", FOUND),
    Row("The engines meanwhile", (*KEY_FIGURES, TRANSFERS, SEEN)),
    Row("Who was told", TOLD),
    Row("Is everything recorded?", KEPT),
)
