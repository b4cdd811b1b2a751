"""The four key figures of every engine, as panels that several boards show."""

from typing import Final

from dashboards import thresholds
from dashboards.panels import Panel, Query
from dashboards.queries import ENGINE, rise

_EACH: Final = "{{engine}} {{rank}}"


def _failures(metric: str) -> tuple[Query, ...]:
    expr = rise(f"bleedwatch_engine_{metric}_total{ENGINE}", by="engine, rank", merge="max")
    return (Query(expr=expr, legend=_EACH),)


KEY_FIGURES: Final = (
    Panel(
        title="Unreleased KV tokens",
        description="KV tokens of an engine that no request accounts for, by how sure that is. "
        "No series means that the engine does not tell, not zero.",
        queries=(
            Query(
                expr="max by (engine, rank, quality) "
                f"(bleedwatch_engine_unreleased_tokens{ENGINE})",
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
        queries=_failures("clear_failures"),
        width=6,
        alarm_at=1,
        runbook="BW202",
    ),
    Panel(
        title="Metadata mismatches",
        description="Times an engine saw KV memory or metadata that belong to another request.",
        queries=_failures("metadata_mismatches"),
        width=6,
        alarm_at=1,
        runbook="BW203",
    ),
    Panel(
        title="KV pool usage",
        description="Share of an engine's KV pool in use, without what is only cached.",
        queries=(
            Query(
                expr=f"max by (engine, rank) (bleedwatch_engine_pool_usage_ratio{ENGINE})",
                legend=_EACH,
            ),
        ),
        unit="percentunit",
        width=6,
        alarm_at=thresholds.POOL_USAGE,
        runbook="BW205",
    ),
)

TRANSFERS: Final = Panel(
    title="Transfer failures",
    description="Times an engine failed to hand KV memory to another one: each is a path on which "
    "memory is released under somebody's writes.",
    queries=_failures("transfer_failures"),
    width=12,
    warn_at=1,
    runbook="BW204",
)

SEEN: Final = Panel(
    title="Engines seen",
    description="Scrapes of engines by outcome: any outcome but ok gave no sample.",
    queries=(
        Query(
            expr="sum by (outcome) "
            f"(rate(bleedwatch_engine_scrapes_total{ENGINE}[$__rate_interval]))",
            legend="{{outcome}}",
        ),
    ),
    unit="ops",
    runbook="BleedwatchEngineUnseen",
)
