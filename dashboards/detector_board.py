"""The detector from inside, for who runs the workers."""

from typing import Final

from dashboards import thresholds
from dashboards.panels import Panel, Query, Row, lines, rates
from dashboards.queries import BOARD_INTERVAL, rate, rise

_BATCHES: Final = f"sum by (le) (rate(bleedwatch_batch_seconds_bucket[{BOARD_INTERVAL}]))"

INPUT: Final = (
    rates("Records", "Records taken from each input.", "bleedwatch_records_total", "topic"),
    rates("Sequences", "Prompts and responses judged.", "bleedwatch_sequences_total", "kind"),
    Panel(
        title="Lag",
        description="How long the oldest unfinished record of an input has waited.",
        queries=(Query(expr="max by (topic) (bleedwatch_lag_seconds)", legend="{{topic}}"),),
        unit="s",
        alarm_at=thresholds.LAG_SECONDS,
        runbook="BleedwatchLate",
    ),
    lines(
        "Records waiting",
        "Records of an input that are not finished with.",
        {"{{topic}}": "sum by (topic) (bleedwatch_lag_records)"},
    ),
    lines(
        "Partitions",
        "Partitions that workers read, and those whose window is being rebuilt.",
        {
            "assigned": "sum(bleedwatch_assigned_partitions)",
            "warming": "sum(bleedwatch_warming_partitions)",
        },
    ),
    lines(
        "Rebuilding windows",
        "Seconds spent and records read again since each worker started.",
        {
            "seconds": "sum(bleedwatch_warmup_seconds_total)",
            "records": "sum(bleedwatch_warmup_records_total)",
        },
    ),
)

JUDGING: Final = (
    Panel(
        title="Batch time",
        description="Time to judge one batch: half and 99 of 100 are below.",
        queries=tuple(
            Query(expr=f"histogram_quantile({share}, {_BATCHES})", legend=f"p{round(share * 100)}")
            for share in (0.5, 0.99)
        ),
        unit="s",
        warn_at=thresholds.BATCH_SECONDS,
        runbook="BleedwatchLate",
    ),
    lines(
        "Event time behind the clock",
        "How far the slowest partition's watermark lies behind the clock.",
        {"slowest": "time() - min(bleedwatch_watermark_timestamp_seconds)"},
        unit="s",
    ),
    lines(
        "Out of order",
        "Sequences that came late, were judged before their turn, or are dated hours away.",
        {
            "late": rate("bleedwatch_late_sequences_total"),
            "forced": rate("bleedwatch_forced_sequences_total"),
            "clock jumps": rate("bleedwatch_clock_jumps_total"),
        },
        unit="ops",
    ),
)

MEMORY: Final = (
    lines(
        "Postings",
        "Postings in the windows of all partitions.",
        {"postings": "sum(bleedwatch_index_postings)"},
        width=6,
    ),
    lines(
        "Bytes",
        "Memory of the index, of what is common, and of the ranges that workers keep for all.",
        {
            "index": "sum(bleedwatch_index_bytes)",
            "commonness": "sum(bleedwatch_commonness_bytes)",
            "shared ranges": "sum(bleedwatch_shared_range_bytes)",
        },
        unit="bytes",
        width=6,
    ),
    lines(
        "Reach of the memory",
        "How far back the memory of what is common reaches; a day is asked for.",
        {
            "shortest": "min(bleedwatch_commonness_reach_seconds)",
            "shortest shared range": "min(bleedwatch_shared_range_reach_seconds)",
        },
        unit="s",
        width=6,
    ),
    Panel(
        title="Given up for want of memory",
        description="Sequences and sketches evicted inside the window, and times the memory of "
        "what is common was shortened.",
        queries=(
            Query(expr=rise("bleedwatch_evicted_sequences_total"), legend="sequences"),
            Query(expr=rise("bleedwatch_evicted_sketches_total"), legend="sketches"),
            Query(expr=rise("bleedwatch_commonness_shortened_total"), legend="shortened"),
        ),
        width=6,
        alarm_at=1,
        runbook="BW901",
    ),
)

SHARING: Final = (
    rates(
        "Showings told and heard",
        "Showings of shingles that workers exchange.",
        "bleedwatch_shared_showings_total",
        "direction",
    ),
    rates(
        "Taints told and heard",
        "Tainted shingles that workers exchange.",
        "bleedwatch_shared_taints_total",
        "direction",
    ),
    rates(
        "From other workers, not used",
        "Records of other workers that were not used.",
        "bleedwatch_shared_refused_total",
        "reason",
    ),
)

LOSSES: Final = (
    rates("Not judged", "By cause.", "bleedwatch_blind_sequences_total", "cause", width=6),
    Panel(
        title="Dead letters",
        description="Unreadable records by reason.",
        queries=(
            Query(expr=rise("bleedwatch_dead_letters_total", by="reason"), legend="{{reason}}"),
        ),
        width=6,
        alarm_at=1,
        runbook="BleedwatchUnreadable",
    ),
    rates(
        "Rows refused",
        "Rows of requests that could not be packed, by reason.",
        "bleedwatch_rows_refused_total",
        "reason",
        width=6,
    ),
    Panel(
        title="Key files unreadable",
        description="1 while a worker cannot read a key file: the keys before stay in use.",
        queries=(Query(expr="max(bleedwatch_key_file_unreadable)", legend="unreadable"),),
        width=6,
        alarm_at=1,
        runbook="BW901",
    ),
)

PROCESS: Final = (
    Panel(
        title="Versions",
        description="Workers by version of bleedwatch and Python.",
        queries=(Query(expr="count by (version, python) (bleedwatch_build_info)"),),
        kind="table",
    ),
    lines(
        "Resident memory",
        "Memory of each worker process.",
        {"{{instance}}": "process_resident_memory_bytes and on (instance) bleedwatch_build_info"},
        unit="bytes",
    ),
    Panel(
        title="CPU",
        description="Cores that each worker uses.",
        queries=(
            Query(
                expr=f"rate(process_cpu_seconds_total[{BOARD_INTERVAL}]) "
                "and on (instance) bleedwatch_build_info",
                legend="{{instance}}",
            ),
        ),
    ),
)

DETECTOR: Final = (
    Row("Input", INPUT),
    Row("Judging", JUDGING),
    Row("Memory", MEMORY),
    Row("What workers tell each other", SHARING),
    Row("Losses", LOSSES),
    Row("Processes", PROCESS),
)
