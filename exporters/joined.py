"""The metrics of all parts of one process on one page; no two parts have a metric in common."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric


class Joined:
    """Collects what the registries of the parts do; parts may come at any time."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self._parts: tuple[CollectorRegistry, ...] = ()
        self.registry.register(self)

    def add(self, part: CollectorRegistry) -> None:
        """Show the metrics of a part as well."""
        self._parts = (*self._parts, part)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of now."""
        for part in self._parts:
            yield from part.collect()
