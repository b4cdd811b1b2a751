"""The metrics of one worker process: those of the list, its batch times, its build, its process."""

import platform
from collections.abc import Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.metrics_core import InfoMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector

from exporters.collector import Collected
from exporters.metrics import BATCH_SECONDS, BUILD, BUILD_HELP, WORKER, KnownLabels
from exporters.worker_state import StateSource


class WorkerMetrics:
    """Registers the metrics in `registry`, a new one if none is given.

    `batch_seconds` is observed by whoever measures batches. The standard metrics of the process
    (memory, CPU, open files) are registered too, where the system tells them.
    """

    def __init__(
        self,
        source: StateSource,
        *,
        known: KnownLabels,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self.registry = CollectorRegistry() if registry is None else registry
        self.batch_seconds = Histogram(
            BATCH_SECONDS.name,
            BATCH_SECONDS.help,
            buckets=BATCH_SECONDS.buckets,
            registry=self.registry,
        )
        ProcessCollector(registry=self.registry)
        self.registry.register(Collected(WORKER, source.state, known=known.of))
        self.registry.register(_Build())


class _Build:
    """The versions, which never change while a process runs."""

    def describe(self) -> Iterator[Metric]:
        """Yield what `collect` yields."""
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        """Yield the one metric."""
        build = {"version": version("bleedwatch"), "python": platform.python_version()}
        yield InfoMetricFamily(BUILD, BUILD_HELP, build)
