"""What a sidecar shows of itself: health on a file, and probes and metrics over HTTP."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from exporters.health import HealthServer
from exporters.readiness import Pulse
from exporters.settings import MetricsSettings
from exporters.sidecar_metrics import SidecarMetrics
from exporters.sidecar_state import SidecarState, SpoolState
from ingest.sidecar_health import SidecarHealth, write_health

LOOK_S = 1.0
"""How often the sidecar is looked at: a probe may take it for dead after some multiples."""


class Board:
    """Holds the last look at a sidecar. The loop beats; threads of the server read.

    `path` is the health file, if there is to be one.
    """

    def __init__(
        self, look: Callable[[], SidecarHealth], settings: MetricsSettings, *, path: str | None
    ) -> None:
        self._look = look
        self._settings = settings
        self._path = path
        self._pulse = Pulse()
        self._last: SidecarHealth | None = None
        self._looked_s = -math.inf
        self.metrics = SidecarMetrics(self)

    def beat(self) -> None:
        """Say that the loop has turned; look at the sidecar if it is time."""
        self._pulse.beat()
        now_s = time.monotonic()
        if now_s - self._looked_s >= LOOK_S:
            self._looked_s = now_s
            self.look_again()

    def look_again(self) -> None:
        """Look at the sidecar now; to be called where its loop runs."""
        self._last = self._look()
        if self._path is not None:
            write_health(self._last, self._path)

    def state(self) -> SidecarState:
        """Return the state of the last look."""
        return SidecarState() if self._last is None else _state(self._last)

    def not_live(self) -> list[str]:
        """Return why the process should be restarted: its loop has stopped turning."""
        limit, age = self._settings.live_ms / 1000, self._pulse.age_seconds
        if age <= limit:
            return []
        return [f"the loop has not turned for {age:.0f} s (metrics.live_ms allows {limit:g} s)"]

    def not_ready(self) -> list[str]:
        """Return why not everything is as it should be."""
        return ["nothing was looked at yet"] if self._last is None else list(self._last.reasons)

    @contextmanager
    def serving(self) -> Iterator[HealthServer]:
        """Answer probes and scrapes for the time of a `with` block.

        Raises SettingsError if the address cannot be listened on.
        """
        probes = {"/livez": self.not_live, "/readyz": self.not_ready}
        server = HealthServer(self._settings, registry=self.metrics.registry, probes=probes)
        try:
            yield server
        finally:
            server.close()


def _state(health: SidecarHealth) -> SidecarState:
    broken: Counter[str] = Counter()
    ignored: Counter[str] = Counter()
    incomplete: Counter[tuple[str, str]] = Counter()
    for log in health.logs:
        broken.update(log.broken)
        ignored.update(log.ignored)
        for word, count in log.incomplete.items():
            side, _, cause = word.partition(".")
            incomplete[side, cause] += count
    spool = health.spool
    return SidecarState(
        records=health.records,
        tokens=health.tokens,
        lines=sum(log.lines for log in health.logs),
        requests=sum(log.requests for log in health.logs),
        repeats=sum(log.repeats for log in health.logs),
        unmapped=sum(log.unmapped for log in health.logs),
        broken=broken,
        ignored=ignored,
        incomplete=incomplete,
        behind_bytes=sum(log.behind_bytes for log in health.logs),
        refused=health.refused,
        unsafe_bytes=health.unsafe_bytes,
        failed_sends=health.failed_sends,
        discarded_bytes=health.discarded_bytes,
        spool=None
        if spool is None
        else SpoolState(
            messages=spool.messages,
            bytes=spool.bytes,
            spooled=spool.spooled,
            replayed=spool.replayed,
            dropped=spool.dropped,
            cut_bytes=spool.cut_bytes,
        ),
    )
