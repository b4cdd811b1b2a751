"""The boards: which questions each answers, in the order in which they are asked at 3 a.m."""

from typing import Final

from dashboards import thresholds
from dashboards.panels import Panel, Query, Row

RATE: Final = "$__rate_interval"
FINDINGS: Final = "bleedwatch_findings_total"

_FOUR: Final = (
    Panel(
        title="Unreleased KV tokens",
        description="KV tokens of an engine that no request accounts for, by how sure that is. "
        "No series means that the engine does not tell, not zero.",
        queries=(
            Query(
                expr="max by (engine, rank, quality) (bleedwatch_engine_unreleased_tokens"
                '{engine=~"$engine"})',
                legend="{{engine}} {{rank}} ({{quality}})",
            ),
        ),
        width=6,
        alarm_at=thresholds.UNRELEASED_TOKENS,
        runbook="BW201",
    ),
    Panel(
        title="Clear failures",
        description="Times an engine did not clear or release KV memory when it should have. "
        "Metrics and log may tell the same failure: the larger of both is shown.",
        queries=(
            Query(
                expr="max by (engine, rank) (increase(bleedwatch_engine_clear_failures_total"
                f'{{engine=~"$engine"}}[{RATE}]))',
                legend="{{engine}} {{rank}}",
            ),
        ),
        width=6,
        alarm_at=1,
        runbook="BW202",
    ),
    Panel(
        title="Metadata mismatches",
        description="Times an engine saw KV memory or metadata that belong to another request.",
        queries=(
            Query(
                expr="max by (engine, rank) (increase(bleedwatch_engine_metadata_mismatches_total"
                f'{{engine=~"$engine"}}[{RATE}]))',
                legend="{{engine}} {{rank}}",
            ),
        ),
        width=6,
        alarm_at=1,
        runbook="BW203",
    ),
    Panel(
        title="KV pool usage",
        description="Share of an engine's KV pool in use, without what is only cached.",
        queries=(
            Query(
                expr="max by (engine, rank) "
                '(bleedwatch_engine_pool_usage_ratio{engine=~"$engine"})',
                legend="{{engine}} {{rank}}",
            ),
        ),
        unit="percentunit",
        width=6,
        alarm_at=thresholds.POOL_USAGE,
        runbook="BW205",
    ),
)
"""The four key figures of every engine."""

OVERVIEW: Final = (
    Row(
        "Is anything bleeding?",
        (
            Panel(
                title="Open incidents",
                description="Incidents that are not resolved. The triage page shows each.",
                queries=(Query(expr='sum(bleedwatch_incidents{state!="resolved"})'),),
                kind="stat",
                width=4,
                alarm_at=1,
                runbook="BW001",
            ),
            Panel(
                title="High findings, last hour",
                description="Findings of high or critical severity sent in the last hour.",
                queries=(
                    Query(expr=f'sum(increase({FINDINGS}{{severity=~"high|critical"}}[1h]))'),
                ),
                kind="stat",
                width=4,
                alarm_at=1,
                runbook="BW001",
            ),
            Panel(
                title="Findings by rule",
                description="Findings per interval by rule; a surer version counts again.",
                queries=(
                    Query(
                        expr=f"sum by (rule) (increase({FINDINGS}[{RATE}])) > 0", legend="{{rule}}"
                    ),
                ),
                width=8,
                no_value="none",
            ),
            Panel(
                title="Overlap between tenants",
                description="Share of the shingles of responses that other tenants have shown as "
                "well: raw, and what nothing explains. Only the second one is a bleed.",
                queries=(
                    Query(expr="bleedwatch:overlap:ratio_rate5m", legend="raw"),
                    Query(expr="bleedwatch:unexplained:ratio_rate5m", legend="unexplained"),
                ),
                unit="percentunit",
                width=8,
                alarm_at=thresholds.UNEXPLAINED_SHARE,
                runbook="BW001",
            ),
        ),
    ),
    Row("Do the engines keep their memory apart?", _FOUR),
    Row(
        "Is the monitor healthy?",
        (
            Panel(
                title="Oldest unread record",
                description="How long the oldest unfinished record has waited: findings are that "
                "late.",
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
                runbook="BleedwatchOutputFailing",
            ),
            Panel(
                title="Tokens judged",
                description="Tokens of prompts and responses judged per second.",
                queries=(
                    Query(expr=f"sum(rate(bleedwatch_tokens_total[{RATE}]))", legend="tokens"),
                ),
                width=8,
            ),
            Panel(
                title="Engines seen",
                description="Scrapes of engines by outcome: any outcome but ok gave no sample.",
                queries=(
                    Query(
                        expr="sum by (outcome) (rate(bleedwatch_engine_scrapes_total"
                        f'{{engine=~"$engine"}}[{RATE}]))',
                        legend="{{outcome}}",
                    ),
                ),
                unit="ops",
                width=8,
                runbook="BleedwatchEngineUnseen",
            ),
        ),
    ),
    Row(
        "What is it blind to?",
        (
            Panel(
                title="Sequences not judged",
                description="Prompts and responses per second that could not be judged, by cause.",
                queries=(
                    Query(
                        expr=f"sum by (cause) (rate(bleedwatch_blind_sequences_total[{RATE}]))",
                        legend="{{cause}}",
                    ),
                ),
                unit="ops",
                width=8,
                runbook="BW901",
            ),
            Panel(
                title="Recall given up",
                description="Sequences given up inside the window for want of memory, and those "
                "that came too late.",
                queries=(
                    Query(
                        expr=f"sum(rate(bleedwatch_evicted_sequences_total[{RATE}]))",
                        legend="evicted",
                    ),
                    Query(
                        expr=f"sum(rate(bleedwatch_late_sequences_total[{RATE}]))", legend="late"
                    ),
                ),
                unit="ops",
                width=8,
                runbook="BW901",
            ),
            Panel(
                title="Learning",
                description="1 while the memory of what is common reaches back too little: "
                "findings of content are capped at low then.",
                queries=(Query(expr="max(bleedwatch_learning)"),),
                kind="stat",
                width=4,
                warn_at=1,
            ),
            Panel(
                title="Unreadable records",
                description="Records in the dead-letter topic, last hour.",
                queries=(Query(expr="sum(increase(bleedwatch_dead_letters_total[1h]))"),),
                kind="stat",
                width=4,
                warn_at=1,
                runbook="BleedwatchUnreadable",
            ),
        ),
    ),
)

INCIDENTS: Final = (
    Row(
        "Incidents",
        (
            Panel(
                title="By state",
                description="Incidents in the store by state.",
                queries=(Query(expr="sum by (state) (bleedwatch_incidents)", legend="{{state}}"),),
                kind="bargauge",
            ),
            Panel(
                title="Changes",
                description="Opened, gone on, graver, resolved, opened again.",
                queries=(
                    Query(
                        expr=f"sum by (kind) (increase(bleedwatch_incident_changes_total[{RATE}]))",
                        legend="{{kind}}",
                    ),
                ),
                width=16,
            ),
        ),
    ),
    Row(
        "What was found",
        (
            Panel(
                title="Findings, last 24 hours",
                description="By rule, severity and confidence.",
                queries=(
                    Query(
                        expr=f"sum by (rule, severity, confidence) (increase({FINDINGS}[24h])) > 0"
                    ),
                ),
                kind="table",
                width=12,
                no_value="none",
            ),
            Panel(
                title="What explained overlaps",
                description="Shingles that another tenant has shown, by what explains them.",
                queries=(
                    Query(
                        expr=f"sum by (reason) (rate(bleedwatch_explained_shingles_total[{RATE}]))",
                        legend="{{reason}}",
                    ),
                ),
                unit="ops",
                width=12,
            ),
        ),
    ),
    Row("The engines meanwhile", _FOUR),
    Row(
        "Who was told",
        (
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
                queries=(
                    Query(expr="max by (output) (bleedwatch_output_failing)", legend="{{output}}"),
                ),
                width=12,
                alarm_at=1,
                no_value="no outputs",
                runbook="BleedwatchOutputFailing",
            ),
        ),
    ),
)
