"""Every metric of a sidecar in one list, read from its state when the metrics are asked for.

No label holds a tenant, a request, an engine or a file: the number of series is bounded by fixed
words. What cannot be known, such as the spool of a sidecar without one, is absent, never zero.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from exporters.sidecar_state import SidecarSource, SidecarState, SpoolState

Samples = Mapping[tuple[str, ...], float]


class SidecarRead(NamedTuple):
    """One metric whose value is read from the state of a sidecar."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    read: Callable[[SidecarState], Samples]
    labels: tuple[str, ...] = ()


def _by_word(of: Callable[[SidecarState], Mapping[str, int]]) -> Callable[[SidecarState], Samples]:
    return lambda state: {(word,): count for word, count in of(state).items()}


def _one(of: Callable[[SidecarState], int]) -> Callable[[SidecarState], Samples]:
    return lambda state: {(): of(state)}


def _spool(of: Callable[[SpoolState], int]) -> Callable[[SidecarState], Samples]:
    return lambda state: {} if state.spool is None else {(): of(state.spool)}


SIDECAR: tuple[SidecarRead, ...] = (
    # what was read
    SidecarRead(
        "bleedwatch_sidecar_lines_total",
        "counter",
        "Lines of logs that a reader was given.",
        _one(lambda state: state.lines),
    ),
    SidecarRead(
        "bleedwatch_sidecar_requests_total",
        "counter",
        "Requests read, with all, some or none of their ids.",
        _one(lambda state: state.requests),
    ),
    SidecarRead(
        "bleedwatch_sidecar_repeats_total",
        "counter",
        "Requests that were read again behind a restart and not sent again.",
        _one(lambda state: state.repeats),
    ),
    SidecarRead(
        "bleedwatch_sidecar_unmapped_total",
        "counter",
        "Requests that no tenant rule could place.",
        _one(lambda state: state.unmapped),
    ),
    SidecarRead(
        "bleedwatch_sidecar_incomplete_total",
        "counter",
        "Requests without all ids of a side, by cause.",
        lambda state: dict(state.incomplete.items()),
        ("side", "cause"),
    ),
    SidecarRead(
        "bleedwatch_sidecar_broken_total",
        "counter",
        "Entries of logs, or whole stretches of them, that could not be used.",
        _by_word(lambda state: state.broken),
        ("reason",),
    ),
    SidecarRead(
        "bleedwatch_sidecar_ignored_total",
        "counter",
        "Entries of logs that are of no interest.",
        _by_word(lambda state: state.ignored),
        ("reason",),
    ),
    SidecarRead(
        "bleedwatch_sidecar_behind_bytes",
        "gauge",
        "Bytes of logs that are there and not read yet.",
        _one(lambda state: state.behind_bytes),
    ),
    # what was sent
    SidecarRead(
        "bleedwatch_sidecar_records_total",
        "counter",
        "Records packed into messages.",
        _by_word(lambda state: state.records),
        ("kind",),
    ),
    SidecarRead(
        "bleedwatch_sidecar_tokens_total",
        "counter",
        "Tokens of the sequences among them.",
        _one(lambda state: state.tokens),
    ),
    SidecarRead(
        "bleedwatch_sidecar_refused_total",
        "counter",
        "Records that could not be packed.",
        _by_word(lambda state: state.refused),
        ("reason",),
    ),
    SidecarRead(
        "bleedwatch_sidecar_unsafe_bytes",
        "gauge",
        "Bytes sent that neither the broker nor the spool has yet.",
        _one(lambda state: state.unsafe_bytes),
    ),
    SidecarRead(
        "bleedwatch_sidecar_failed_sends_total",
        "counter",
        "Messages that were refused and sent again.",
        _one(lambda state: state.failed_sends),
    ),
    SidecarRead(
        "bleedwatch_sidecar_discarded_bytes_total",
        "counter",
        "Bytes of pipes that were thrown away while nothing more could be held.",
        _one(lambda state: state.discarded_bytes),
    ),
    # what waits on disk
    SidecarRead(
        "bleedwatch_spool_messages",
        "gauge",
        "Messages that wait on disk.",
        _spool(lambda spool: spool.messages),
    ),
    SidecarRead(
        "bleedwatch_spool_bytes",
        "gauge",
        "Bytes that they take.",
        _spool(lambda spool: spool.bytes),
    ),
    SidecarRead(
        "bleedwatch_spool_spooled_total",
        "counter",
        "Messages that went to disk.",
        _spool(lambda spool: spool.spooled),
    ),
    SidecarRead(
        "bleedwatch_spool_replayed_total",
        "counter",
        "Messages that were sent from there.",
        _spool(lambda spool: spool.replayed),
    ),
    SidecarRead(
        "bleedwatch_spool_dropped_total",
        "counter",
        "Messages given up for room: nobody will ever see them.",
        lambda state: (
            {} if state.spool is None else {(word,): n for word, n in state.spool.dropped.items()}
        ),
        ("topic",),
    ),
    SidecarRead(
        "bleedwatch_spool_cut_bytes_total",
        "counter",
        "Damaged or half-written bytes that were cut off.",
        _spool(lambda spool: spool.cut_bytes),
    ),
)


class SidecarMetrics:
    """The metrics of one sidecar, in a registry that others may join."""

    def __init__(self, source: SidecarSource) -> None:
        self._source = source
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(self)

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without values: registering asks nobody."""
        yield from (_family(metric) for metric in SIDECAR)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics with the values of now."""
        state = self._source.state()
        for metric in SIDECAR:
            family = _family(metric)
            for labels, value in metric.read(state).items():
                family.add_metric(labels, value)
            yield family


def _family(metric: SidecarRead) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return kind(metric.name, metric.help, labels=metric.labels)
