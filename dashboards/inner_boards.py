"""The boards for who runs the monitor: the detector from inside, and the fleet of sidecars."""

from typing import Final

from dashboards import thresholds
from dashboards.panels import Panel, Query, Row

RATE: Final = "$__rate_interval"


def _rate(title: str, description: str, metric: str, by: str, unit: str = "ops") -> Panel:
    """Return a panel of one counter's rate by one label."""
    query = Query(expr=f"sum by ({by}) (rate({metric}[{RATE}]))", legend=f"{{{{{by}}}}}")
    return Panel(title=title, description=description, queries=(query,), unit=unit)


def _level(title: str, description: str, expr: str, unit: str, legend: str = "") -> Panel:
    return Panel(
        title=title, description=description, queries=(Query(expr=expr, legend=legend),), unit=unit
    )


DETECTOR: Final = (
    Row(
        "Input",
        (
            _rate("Records", "Records taken from each input.", "bleedwatch_records_total", "topic"),
            _rate(
                "Sequences", "Prompts and responses judged.", "bleedwatch_sequences_total", "kind"
            ),
            Panel(
                title="Lag",
                description="How long the oldest unfinished record of an input has waited.",
                queries=(
                    Query(expr="max by (topic) (bleedwatch_lag_seconds)", legend="{{topic}}"),
                ),
                unit="s",
                alarm_at=thresholds.LAG_SECONDS,
                runbook="BleedwatchLate",
            ),
        ),
    ),
    Row(
        "Judging",
        (
            Panel(
                title="Batch time",
                description="Time to judge one batch: half and 99 of 100 are below.",
                queries=tuple(
                    Query(
                        expr=f"histogram_quantile({share}, sum by (le) "
                        f"(rate(bleedwatch_batch_seconds_bucket[{RATE}])))",
                        legend=f"p{round(share * 100)}",
                    )
                    for share in (0.5, 0.99)
                ),
                unit="s",
                alarm_at=thresholds.BATCH_SECONDS,
                runbook="BleedwatchLate",
            ),
            _level(
                "Event time behind the clock",
                "How far the slowest partition's watermark lies behind the clock.",
                "time() - min(bleedwatch_watermark_timestamp_seconds)",
                "s",
                "slowest",
            ),
            _rate(
                "Explained shingles",
                "What explains the shingles that another tenant has shown.",
                "bleedwatch_explained_shingles_total",
                "reason",
            ),
        ),
    ),
    Row(
        "Memory",
        (
            _level(
                "Postings",
                "Postings in the windows of all partitions.",
                "sum(bleedwatch_index_postings)",
                "short",
                "postings",
            ),
            Panel(
                title="Bytes",
                description="Memory of the index, and of what is common.",
                queries=(
                    Query(expr="sum(bleedwatch_index_bytes)", legend="index"),
                    Query(expr="sum(bleedwatch_commonness_bytes)", legend="commonness"),
                ),
                unit="bytes",
            ),
            _level(
                "Reach of the memory",
                "How far back the memory of what is common reaches; a day is asked for.",
                "min(bleedwatch_commonness_reach_seconds)",
                "s",
                "shortest",
            ),
        ),
    ),
    Row(
        "Losses",
        (
            _rate("Not judged", "By cause.", "bleedwatch_blind_sequences_total", "cause"),
            _rate(
                "Dead letters",
                "Unreadable records by reason.",
                "bleedwatch_dead_letters_total",
                "reason",
            ),
            _rate(
                "From other workers, unreadable",
                "Records of other workers that could not be read.",
                "bleedwatch_shared_refused_total",
                "reason",
            ),
        ),
    ),
)

SIDECARS: Final = (
    Row(
        "Reading",
        (
            _level(
                "Requests",
                "Requests read per second, by sidecar.",
                f"sum by (instance) (rate(bleedwatch_sidecar_requests_total[{RATE}]))",
                "ops",
                "{{instance}}",
            ),
            _level(
                "Tokens",
                "Tokens read per second, by sidecar.",
                f"sum by (instance) (rate(bleedwatch_sidecar_tokens_total[{RATE}]))",
                "ops",
                "{{instance}}",
            ),
            _level(
                "Behind",
                "Bytes of the logs that are not read yet.",
                "sum by (instance) (bleedwatch_sidecar_behind_bytes)",
                "bytes",
                "{{instance}}",
            ),
        ),
    ),
    Row(
        "Not seen",
        (
            _rate(
                "Incomplete requests",
                "Requests whose ids the log does not hold, by cause.",
                "bleedwatch_sidecar_incomplete_total",
                "cause",
            ),
            _level(
                "Without tenant",
                "Requests that no tenant rule fits.",
                f"sum by (instance) (rate(bleedwatch_sidecar_unmapped_total[{RATE}]))",
                "ops",
                "{{instance}}",
            ),
            _rate(
                "Broken entries",
                "Entries of logs that could not be read, by reason.",
                "bleedwatch_sidecar_broken_total",
                "reason",
            ),
        ),
    ),
    Row(
        "Sending",
        (
            _level(
                "Failed sends",
                "Attempts to send that failed.",
                f"sum by (instance) (rate(bleedwatch_sidecar_failed_sends_total[{RATE}]))",
                "ops",
                "{{instance}}",
            ),
            _level(
                "Spool",
                "Bytes that wait on disk for the broker.",
                "sum by (instance) (bleedwatch_spool_bytes)",
                "bytes",
                "{{instance}}",
            ),
            Panel(
                title="Dropped by the spool",
                description="Messages given up because the spool was full: lost recall.",
                queries=(
                    Query(
                        expr="sum by (instance) "
                        f"(increase(bleedwatch_spool_dropped_total[{RATE}]))",
                        legend="{{instance}}",
                    ),
                ),
                alarm_at=1,
                runbook="BW901",
            ),
        ),
    ),
)
