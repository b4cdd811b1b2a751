"""A worker under watch: its handler measured, its health and its metrics served over HTTP."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing

from detector.config.root import Settings
from detector.streaming.bands_exchange import BandsExchange
from detector.streaming.exchange import Exchange
from detector.streaming.handler import StreamHandler
from detector.streaming.metered import MeteredHandler
from detector.streaming.monitor import Monitor, Runner, known_labels
from exporters.health import HealthServer
from exporters.joined import Joined
from exporters.readiness import Probes, Pulse
from exporters.worker_metrics import WorkerMetrics
from ingest.stream import Handler
from ingest.topics import topic_names


class Watched:
    """What a runner needs so that others can see how it does.

    Give the runner `handler` in place of the handler, `beat` to call whenever its loop turns, and
    `warmed_up` to call when a window has been rebuilt.
    """

    def __init__(
        self,
        settings: Settings,
        handler: StreamHandler,
        *,
        outer: Handler | None = None,
        exchange: Exchange | None = None,
        bands: BandsExchange | None = None,
        key_file_unreadable: Callable[[], bool] = lambda: False,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        """`outer` is what wraps the handler, if something does, and is called in its place.

        `now_s` is the clock of the broker.
        """
        topics = topic_names(settings.kafka.topic_prefix).inputs
        learning_ms = settings.detection.commonness.learning_ms
        monitor = Monitor(
            handler,
            learning_ms=learning_ms,
            exchange=exchange,
            bands=bands,
            key_file_unreadable=key_file_unreadable,
            now_s=now_s,
        )
        pulse = Pulse()
        self._settings = settings.metrics
        self._monitor = monitor
        self._metrics = WorkerMetrics(monitor, known=known_labels(topics))
        self._probes = Probes(monitor, pulse, settings.metrics)
        self.beat = pulse.beat
        self.warmed_up = monitor.warmed_up
        self.handler = MeteredHandler(
            handler if outer is None else outer,
            topics=topics,
            monitor=monitor,
            batch_seconds=self._metrics.batch_seconds,
        )

    def show(self, metrics: Joined) -> None:
        """Show the metrics among those of the whole process."""
        metrics.add(self._metrics.registry)

    def follow(self, runner: Runner) -> None:
        """Ask `runner` from now on what only it knows."""
        self._monitor.runner = runner

    def serving(self, runner: Runner) -> AbstractContextManager[HealthServer]:
        """Answer probes and scrapes about `runner` until the end of a `with` block.

        Raises SettingsError if the address cannot be listened on.
        """
        self.follow(runner)
        probes = {"/livez": self._probes.not_live, "/readyz": self._probes.not_ready}
        return closing(HealthServer(self._settings, registry=self._metrics.registry, probes=probes))
