"""The overview, for security and infrastructure together, in the order of questions at 3 a.m."""

from typing import Final

from dashboards import thresholds
from dashboards.alerts import ABOUT_TENANTS, GRAVE, OVERLAP, UNEXPLAINED
from dashboards.engine_panels import KEY_FIGURES, SEEN
from dashboards.panels import Panel, Query, Row, lines
from dashboards.queries import rate, rise

OPEN: Final = 'sum(bleedwatch_incidents{state!="resolved"})'

BLEEDING: Final = (
    Panel(
        title="Open incidents",
        description="Incidents that are not resolved. The triage page shows each.",
        queries=(Query(expr=OPEN),),
        kind="stat",
        width=4,
        alarm_at=1,
        runbook="BW001",
    ),
    Panel(
        title="High findings, last hour",
        description="Findings of high or critical severity sent in the last hour.",
        queries=(Query(expr=rise(GRAVE, "1h")),),
        kind="stat",
        width=4,
        alarm_at=1,
        runbook="BW001",
    ),
    Panel(
        title="Findings by rule",
        description="Findings per interval by rule; a surer version counts again.",
        queries=(Query(expr=f"{rise(ABOUT_TENANTS, by='rule')} > 0", legend="{{rule}}"),),
        no_value="none",
    ),
    Panel(
        title="Overlap between tenants",
        description="Share of the shingles of responses that other tenants have shown as well: "
        "raw, and what nothing explains. Only the second one is a bleed.",
        queries=(
            Query(expr=OVERLAP, legend="raw"),
            Query(expr=UNEXPLAINED, legend="unexplained"),
        ),
        unit="percentunit",
        alarm_at=thresholds.UNEXPLAINED_SHARE,
        runbook="BW001",
    ),
)

HEALTH: Final = (
    Panel(
        title="Oldest unread record",
        description="How long the oldest unfinished record has waited: findings are that late.",
        queries=(Query(expr="max(bleedwatch_lag_seconds)"),),
        kind="stat",
        unit="s",
        width=4,
        alarm_at=thresholds.LAG_SECONDS,
        runbook="BleedwatchLate",
    ),
    Panel(
        title="Outputs failing",
        description="Outputs at which nothing arrives: alerts wait in the outbox.",
        queries=(Query(expr="sum(bleedwatch_output_failing)"),),
        kind="stat",
        width=4,
        alarm_at=1,
        no_value="no outputs",
        runbook="BleedwatchOutputFailing",
    ),
    Panel(
        title="Tokens judged",
        description="Tokens of prompts and responses judged per second.",
        queries=(Query(expr=rate("bleedwatch_tokens_total"), legend="tokens"),),
    ),
    SEEN,
)

BLINDNESS: Final = (
    lines(
        "Not seen",
        "What could not be judged, by cause: sequences at workers, requests at sidecars and taps.",
        {
            "{{cause}}": rate("bleedwatch_blind_sequences_total", "cause"),
            "logs: {{cause}}": rate("bleedwatch_sidecar_incomplete_total", "cause"),
            "no tenant": rate("bleedwatch_sidecar_unmapped_total"),
            "taps: {{cause}}": rate("bleedwatch_tap_blind_total", "cause"),
        },
        unit="ops",
        runbook="BW901",
    ),
    Panel(
        title="Recall given up",
        description="Sequences given up inside the window for want of memory, and those that came "
        "too late.",
        queries=(
            Query(expr=rate("bleedwatch_evicted_sequences_total"), legend="evicted"),
            Query(expr=rate("bleedwatch_late_sequences_total"), legend="late"),
        ),
        unit="ops",
        runbook="BW901",
    ),
    Panel(
        title="Learning",
        description="1 while the memory of what is common reaches back too little: findings of "
        "content are capped at low then.",
        queries=(Query(expr="max(bleedwatch_learning)"),),
        kind="stat",
        width=4,
        warn_at=1,
        runbook="BleedwatchLearning",
    ),
    Panel(
        title="Unreadable records",
        description="Records in the dead-letter topic, last hour.",
        queries=(Query(expr=rise("bleedwatch_dead_letters_total", "1h")),),
        kind="stat",
        width=4,
        alarm_at=1,
        runbook="BleedwatchUnreadable",
    ),
)

OVERVIEW: Final = (
    Row("Is anything bleeding?", BLEEDING),
    Row("Do the engines keep their memory apart?", KEY_FIGURES),
    Row("Is the monitor healthy?", HEALTH),
    Row("What is it blind to?", BLINDNESS),
)
