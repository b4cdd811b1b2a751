"""Reads listed metrics from a state when they are asked for, in the form of prometheus_client."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Generic, Literal, NamedTuple, TypeVar

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

S = TypeVar("S")

Labels = tuple[str, ...]
Samples = Mapping[Labels, float | None]
"""Values by label values; None, which is unknown, is left out."""


class Read(NamedTuple, Generic[S]):
    """One metric whose value is read from a state."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    read: Callable[[S], Samples]
    labels: Labels = ()


class Collected(Generic[S]):
    """A collector for a registry: metrics in their order, with the values of now.

    `state` is asked in the threads of the metrics server. `known` gives the label values of a
    metric whose series exist from the start, at zero.
    """

    def __init__(
        self,
        metrics: tuple[Read[S], ...],
        state: Callable[[], S],
        *,
        known: Callable[[str], Iterable[Labels]] = lambda _: (),
    ) -> None:
        self._metrics = metrics
        self._state = state
        self._known = known

    def describe(self) -> Iterator[Metric]:
        """Yield the metrics without values: registering asks nobody."""
        yield from (_family(metric) for metric in self._metrics)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics with the values of now."""
        state = self._state()
        for metric in self._metrics:
            family = _family(metric)
            zeros: Samples = dict.fromkeys(self._known(metric.name), 0.0)
            for labels, value in {**zeros, **metric.read(state)}.items():
                if value is not None:
                    family.add_metric(labels, value)
            yield family


def _family(metric: Read[S]) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return kind(metric.name, metric.help, labels=metric.labels)
