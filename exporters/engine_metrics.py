"""The metrics of the engines beside a sidecar, in one list; the key figures of each come first.

The label `engine` holds a name that the operator gave, `rank` a number: there are as many series as
engines and ranks are scraped. A level that is not known is left out, never zero.
"""

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry

from exporters.collector import Collected, Read, Samples
from exporters.engine_state import EnginesSource, EnginesState, EngineState


def _counts(of: Callable[[EngineState], Mapping[str, int]]) -> Callable[[EnginesState], Samples]:
    return lambda state: {
        (one.engine, one.rank, source): count
        for one in state.engines
        for source, count in of(one).items()
    }


ENGINES: tuple[Read[EnginesState], ...] = (
    Read(
        "bleedwatch_engine_unreleased_tokens",
        "gauge",
        "KV tokens of an engine that no request accounts for; quality says how sure that is.",
        lambda state: {
            (one.engine, one.rank, one.unreleased_quality): one.unreleased_tokens
            for one in state.engines
        },
        ("engine", "rank", "quality"),
    ),
    Read(
        "bleedwatch_engine_clear_failures_total",
        "counter",
        "Times an engine did not clear or release KV memory when it should have.",
        _counts(lambda one: one.clear_failures),
        ("engine", "rank", "source"),
    ),
    Read(
        "bleedwatch_engine_metadata_mismatches_total",
        "counter",
        "Times an engine saw KV memory or metadata that belong to another request.",
        _counts(lambda one: one.metadata_mismatches),
        ("engine", "rank", "source"),
    ),
    Read(
        "bleedwatch_engine_pool_usage_ratio",
        "gauge",
        "Share of an engine's KV pool that is in use, without what is only cached.",
        lambda state: {(one.engine, one.rank): one.pool_usage_ratio for one in state.engines},
        ("engine", "rank"),
    ),
    Read(
        "bleedwatch_engine_transfer_failures_total",
        "counter",
        "Times an engine failed to hand KV memory to another one.",
        _counts(lambda one: one.transfer_failures),
        ("engine", "rank", "source"),
    ),
    Read(
        "bleedwatch_engine_scrapes_total",
        "counter",
        "Times an engine was asked for its state; any outcome but ok gave no sample.",
        lambda state: dict(state.scrapes.items()),
        ("engine", "outcome"),
    ),
    Read(
        "bleedwatch_engine_probe_stale",
        "gauge",
        "1 if an engine runs what no passed probe has tested, 0 if one has.",
        lambda state: {(engine,): float(one) for engine, one in state.probe_stale.items()},
        ("engine",),
    ),
    Read(
        "bleedwatch_engine_dropped_samples_total",
        "counter",
        "Samples that were given up because the sidecar did not take them in time.",
        lambda state: {(): state.dropped_samples},
        (),
    ),
)


def register_engines(source: EnginesSource, registry: CollectorRegistry) -> None:
    """Add the metrics of the engines of one process to a registry."""
    registry.register(Collected(ENGINES, source.engines))
