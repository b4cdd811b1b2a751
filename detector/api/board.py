"""What an api shows of itself: probes and metrics over HTTP."""

import math
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from typing import Final

from detector.api.keeper import Keeper
from detector.api.recorder import Recorder
from detector.errors import BleedwatchError
from exporters.api_metrics import ApiMetrics
from exporters.api_state import ApiState
from exporters.health import HealthServer
from exporters.incidents.model import ChangeKind
from exporters.readiness import Pulse
from exporters.sending.sender import LaneState
from exporters.settings import MetricsSettings
from exporters.store import heartbeats, incidents, outbox
from exporters.store.database import Database

LOOK_S: Final = 10.0
"""How often the store and the broker are asked how much there is."""


class Board:
    """Holds the last look at an api. The loop beats; threads of the server read.

    `lanes` says how the outputs are doing.
    """

    def __init__(
        self,
        keeper: Keeper,
        recorder: Recorder,
        database: Database,
        settings: MetricsSettings,
        *,
        lanes: Callable[[], list[LaneState]],
    ) -> None:
        self._keeper = keeper
        self._recorder = recorder
        self._database = database
        self._settings = settings
        self._lanes = lanes
        self._pulse = Pulse()
        self._looked_s = -math.inf
        self._stored = ApiState()
        self.metrics = ApiMetrics(self)

    def beat(self) -> None:
        """Say that the loop has turned; look at store and broker if it is time."""
        self._pulse.beat()
        now_s = time.monotonic()
        if now_s - self._looked_s >= LOOK_S and self._keeper.problem is None:
            self._looked_s = now_s
            self._look()

    def state(self) -> ApiState:
        """Return the state: counts of now, what is in the store as of the last look."""
        lanes = self._lanes()
        none = {(lane.output, str(state)): 0 for lane in lanes for state in outbox.State}
        return ApiState(
            findings={name: self._recorder.counts[name] for name in ("new", "updated", "repeated")},
            requests=self._recorder.counts["requests"],
            refused=dict(self._recorder.refused),
            changes={kind.value: self._keeper.changes[kind.value] for kind in ChangeKind},
            lag_records=self._stored.lag_records,
            incidents=self._stored.incidents,
            heartbeats=self._stored.heartbeats,
            outbox=none | dict(self._stored.outbox),
            failing_outputs={lane.output: lane.is_failing or lane.is_gone for lane in lanes},
            store_failures=self._keeper.store_failures,
        )

    def not_live(self) -> list[str]:
        """Return why the process should be restarted: its loop has stopped turning."""
        return self._pulse.not_live(self._settings)

    def not_ready(self) -> list[str]:
        """Return why incidents are not to be relied on now."""
        problem = self._keeper.problem
        return [] if problem is None else [problem]

    def serving(self) -> AbstractContextManager[HealthServer]:
        """Answer probes and scrapes until the end of a `with` block.

        Raises SettingsError if the address cannot be listened on.
        """
        probes = {"/livez": self.not_live, "/readyz": self.not_ready}
        return closing(HealthServer(self._settings, registry=self.metrics.registry, probes=probes))

    def _look(self) -> None:
        try:
            with self._database.read() as connection:
                states = incidents.count_by_state(connection)
                waiting = outbox.counts(connection)
                beats = heartbeats.latest(connection)
            lag = self._recorder.lag()
        except BleedwatchError:
            return  # the next turn of the loop meets the same, and tells it
        self._stored = ApiState(
            lag_records={(at.topic, at.partition): count for at, count in lag.items()},
            heartbeats=beats,
            incidents={state.value: count for state, count in states.items()},
            outbox={
                (output, str(state)): count
                for output, found in waiting.items()
                for state, count in found.items()
            },
        )
