"""Every metric of an api in one list, read from its state when the metrics are asked for.

No label names a tenant, request, pool or incident: the number of series is bounded by partitions,
outputs, senders of heartbeats and fixed words. What is not known yet is absent, never zero.
"""

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry

from exporters.api_state import ApiSource, ApiState
from exporters.collector import Collected, Read, Samples


def _by_word(of: Callable[[ApiState], Mapping[str, int]]) -> Callable[[ApiState], Samples]:
    return lambda state: {(word,): value for word, value in of(state).items()}


API: tuple[Read[ApiState], ...] = (
    Read(
        "bleedwatch_incidents",
        "gauge",
        "Incidents in the store by state.",
        _by_word(lambda state: state.incidents),
        ("state",),
    ),
    Read(
        "bleedwatch_incident_changes_total",
        "counter",
        "Changes of incidents that this process has made, by kind.",
        _by_word(lambda state: state.changes),
        ("kind",),
    ),
    Read(
        "bleedwatch_api_findings_total",
        "counter",
        "Findings recorded: new ones, surer versions, and repeats that change nothing.",
        _by_word(lambda state: state.findings),
        ("outcome",),
    ),
    Read(
        "bleedwatch_api_requests_total",
        "counter",
        "Rows of requests recorded.",
        lambda state: {(): state.requests},
    ),
    Read(
        "bleedwatch_api_refused_total",
        "counter",
        "Findings and rows of requests that could not be read.",
        lambda state: state.refused,
        ("topic", "reason"),
    ),
    Read(
        "bleedwatch_api_lag_records",
        "gauge",
        "Records of a partition that are not recorded yet.",
        lambda state: {
            (topic, str(partition)): lag for (topic, partition), lag in state.lag_records.items()
        },
        ("topic", "partition"),
    ),
    Read(
        "bleedwatch_api_store_failures_total",
        "counter",
        "Times the store could not be used: what was read waits and is written again.",
        lambda state: {(): state.store_failures},
    ),
    Read(
        "bleedwatch_outbox_notifications",
        "gauge",
        "Notifications in the store by output and state.",
        lambda state: state.outbox,
        ("output", "state"),
    ),
    Read(
        "bleedwatch_output_failing",
        "gauge",
        "1 while what is sent to an output does not arrive.",
        _by_word(lambda state: {word: int(it) for word, it in state.failing_outputs.items()}),
        ("output",),
    ),
    Read(
        "bleedwatch_heartbeat_arrived_timestamp_seconds",
        "gauge",
        "When the newest heartbeat that has arrived was made, by who made it.",
        lambda state: {(sender,): ms / 1000 for sender, ms in state.heartbeats.items()},
        ("sender",),
    ),
)


class ApiMetrics:
    """The metrics of one api, in a registry that others may join."""

    def __init__(self, source: ApiSource) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(Collected(API, source.state))
