"""What a sidecar shows of itself: health on a file, and probes and metrics over HTTP."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, closing

from exporters.health import HealthServer
from exporters.readiness import Pulse
from exporters.settings import MetricsSettings
from exporters.sidecar_metrics import SidecarMetrics
from exporters.sidecar_state import KvEventsState, PushState, SidecarState, SpoolState
from ingest.sidecar_beside import BesideHealth
from ingest.sidecar_health import SidecarHealth, write_health
from ingest.spool_counts import SpoolCounts

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
        self.last: SidecarHealth | None = None
        """The last look."""
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
        self.last = self._look()
        if self._path is not None:
            write_health(self.last, self._path)

    def state(self) -> SidecarState:
        """Return the state of the last look."""
        return SidecarState() if self.last is None else _state(self.last)

    def not_live(self) -> list[str]:
        """Return why the process should be restarted: its loop has stopped turning."""
        return self._pulse.not_live(self._settings)

    def not_ready(self) -> list[str]:
        """Return why not everything is as it should be."""
        return ["nothing was looked at yet"] if self.last is None else list(self.last.reasons)

    def serving(self) -> AbstractContextManager[HealthServer]:
        """Answer probes and scrapes until the end of a `with` block.

        Raises SettingsError if the address cannot be listened on.
        """
        probes = {"/livez": self.not_live, "/readyz": self.not_ready}
        return closing(HealthServer(self._settings, registry=self.metrics.registry, probes=probes))


def _state(health: SidecarHealth) -> SidecarState:
    logs = health.logs
    return SidecarState(
        records=health.records,
        tokens=health.tokens,
        lines=sum(log.lines for log in logs),
        requests=sum(log.requests for log in logs),
        repeats=sum(log.repeats for log in logs),
        unmapped=sum(log.unmapped for log in logs),
        broken=_sum(log.broken for log in logs),
        ignored=_sum(log.ignored for log in logs),
        incomplete=_by_side(_sum(log.incomplete for log in logs)),
        behind_bytes=sum(log.behind_bytes for log in logs),
        refused=health.refused,
        unsafe_bytes=health.unsafe_bytes,
        failed_sends=health.failed_sends,
        discarded_bytes=health.discarded_bytes,
        spool=None if health.spool is None else _spool(health.spool),
        push=_push(health.beside),
        kv_events=_kv_events(health.beside),
        heartbeats=health.heartbeats,
    )


def _spool(spool: SpoolCounts) -> SpoolState:
    return SpoolState(
        messages=spool.messages,
        bytes=spool.bytes,
        spooled=spool.spooled,
        replayed=spool.replayed,
        dropped=spool.dropped,
        dropped_bytes=spool.dropped_bytes,
        refused=spool.refused,
        cut_bytes=spool.cut_bytes,
    )


def _push(beside: BesideHealth) -> PushState | None:
    push = beside.push
    if push is None:
        return None
    return PushState(
        requests=push.requests,
        unmapped=push.unmapped,
        refused=push.refused,
        incomplete=_by_side(push.incomplete),
        waiting_bytes=push.waiting_bytes,
    )


def _kv_events(beside: BesideHealth) -> KvEventsState | None:
    if not beside.kv_events:
        return None
    return KvEventsState(
        messages=_sum(one.messages for one in beside.kv_events),
        unreadable=_sum(one.unreadable for one in beside.kv_events),
        told=_sum(one.told for one in beside.kv_events),
    )


def _sum(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return total


def _by_side(counts: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Take "side.cause" apart."""
    parts = {word: word.partition(".") for word in counts}
    return {(parts[word][0], parts[word][2]): count for word, count in counts.items()}
