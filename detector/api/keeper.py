"""The loop of an api: records what comes, resolves what is quiet, forgets what is old.

An incident is quiet by what has been recorded of it. So nothing is resolved while records wait in
their topics: after a start, an outage or a busy time the news of an incident may be among them.

A store or broker that is away ends nothing: what was read waits, the state says so, and the loop
tries again.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable
from typing import Final

from detector.api.recorder import Recorder
from detector.errors import BleedwatchError, BrokerError, StoreError
from exporters.incidents.model import Change
from exporters.store.database import Database
from exporters.store.offsets import Offsets
from exporters.store.retention import forget
from exporters.store.settings import StoreRetentionSettings

POLL_S: Final = 0.5
"""How long a turn waits for something to come: what comes is recorded at once."""

RESOLVE_S: Final = 5.0
"""How often incidents that have become quiet are looked for."""

LOOK_HOLDS_S: Final = 2 * RESOLVE_S
"""For how long a look at the ends of topics says something about now: one that was missed."""

FORGET_S: Final = 600.0
"""How often something too old is looked for: kept spans are days."""

AWAY_S: Final = 2.0
"""Pause after a store or broker could not be used."""

_log = logging.getLogger(__name__)


class Keeper:
    """Turns the loop of one api; for one thread.

    `now_ms` is wall time, `clock` gives seconds that never go back, `pause` waits. `on_change` is
    called after a transaction that changed an incident.
    """

    def __init__(
        self,
        recorder: Recorder,
        database: Database,
        retention: StoreRetentionSettings,
        *,
        now_ms: Callable[[], int],
        clock: Callable[[], float],
        pause: Callable[[float], object],
        on_change: Callable[[], None],
    ) -> None:
        self._recorder = recorder
        self._database = database
        self._retention = retention
        self._now_ms = now_ms
        self._clock = clock
        self._pause = pause
        self._on_change = on_change
        self._resolve_s = self._forget_s = self._looked_s = -math.inf
        self._ends: Offsets = {}
        self.changes: Counter[str] = Counter()
        """Changes of incidents by kind."""
        self.store_failures = 0
        self.problem: str | None = None
        """Why nothing is recorded just now, None if something is."""

    def turn(self, timeout_s: float = POLL_S) -> None:
        """Do what is to be done, within the time-out and a pause; never raises for what is away."""
        try:
            self._tell(self._recorder.turn(timeout_s))
            now_s = self._clock()
            if now_s >= self._forget_s:
                more = self._forget()
                self._forget_s = now_s if more else now_s + FORGET_S
            if now_s >= self._resolve_s:
                if self._has_caught_up(now_s):
                    self._tell(self._recorder.resolve())
                self._resolve_s = now_s + RESOLVE_S
        except (StoreError, BrokerError) as error:
            self._failed(error)
            self._pause(AWAY_S)
        else:
            self.problem = None

    def _has_caught_up(self, now_s: float) -> bool:
        """Look where the topics end; True if all is recorded that lay before their ends last time.

        Asking for no lag at all would never end under load: something always comes meanwhile. The
        last look is of RESOLVE_S ago; an older one says nothing, nor does the first. Raises
        BrokerError.
        """
        done, lag = dict(self._recorder.positions), self._recorder.lag()
        is_recent = now_s - self._looked_s <= LOOK_HOLDS_S
        has = is_recent and all(done.get(at, 0) >= end for at, end in self._ends.items())
        self._ends = {at: done[at] + behind for at, behind in lag.items()}
        self._looked_s = now_s
        return has

    def _forget(self) -> int:
        with self._database.write() as connection:
            return forget(connection, self._retention, now_ms=self._now_ms())

    def _tell(self, changes: tuple[Change, ...]) -> None:
        self.changes.update(change.kind.value for change in changes)
        if changes:
            self._on_change()

    def _failed(self, error: BleedwatchError) -> None:
        if self.problem is None:
            _log.warning("nothing is recorded for now: %s", error)
        self._looked_s = -math.inf  # what came while something was away is not known
        self.problem = str(error)
        self.store_failures += isinstance(error, StoreError)
