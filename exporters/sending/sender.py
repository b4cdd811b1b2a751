"""Drains the outbox: a thread for each output, and one that keeps the lease."""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from detector.errors import StoreError
from exporters.sending.lane import Lane
from exporters.sending.leadership import RENEW_MS, Leadership

POLL_MS: Final = 1_000
"""How often a lane looks for what another process has put into the outbox."""

STOP_S: Final = 20.0
"""How long an end waits for sendings under way: the longest time-out of an output and some."""

_log = logging.getLogger(__name__)


class LaneState(NamedTuple):
    """How an output is doing in this process."""

    output: str
    is_failing: bool
    is_gone: bool


class Sender:
    """Sends while this process holds the lease; start it once, stop it once."""

    def __init__(
        self, lanes: Sequence[Lane], leadership: Leadership, *, now_ms: Callable[[], int]
    ) -> None:
        self._lanes = tuple(lanes)
        self._leadership = leadership
        self._now_ms = now_ms
        self._stopping = threading.Event()
        self._wakes = [threading.Event() for _ in self._lanes]
        self._threads = [
            threading.Thread(target=self._keep_lease, name="lease", daemon=True),
            *(
                threading.Thread(
                    target=self._run,
                    args=(lane, wake),
                    name=f"output {lane.output.name}",
                    daemon=True,
                )
                for lane, wake in zip(self._lanes, self._wakes, strict=True)
            ),
        ]

    def start(self) -> None:
        """Begin to send."""
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Look into the outbox now: something was put there."""
        for wake in self._wakes:
            wake.set()

    def states(self) -> list[LaneState]:
        """Return how each output is doing, in the order of the settings."""
        return [LaneState(lane.output.name, lane.is_failing, lane.is_gone) for lane in self._lanes]

    def stop(self) -> None:
        """End what is under way, write it down, and let go of the lease and the outputs."""
        self._stopping.set()
        self.wake()
        for thread in self._threads:
            thread.join(STOP_S)
        for lane in self._lanes:
            lane.output.close()
        try:
            self._leadership.let_go()
        except StoreError as error:
            _log.warning("the lease could not be let go of: %s", error)

    def _keep_lease(self) -> None:
        while not self._stopping.is_set():
            try:
                if self._leadership.renew(now_ms=self._now_ms()):
                    self.wake()
            except StoreError as error:
                _log.warning("the lease could not be renewed: %s", error)
            self._stopping.wait(RENEW_MS / 1000)

    def _run(self, lane: Lane, wake: threading.Event) -> None:
        is_away = False
        while not self._stopping.is_set():
            wake.clear()
            now_ms = self._now_ms()
            again_ms = now_ms + POLL_MS
            try:
                if self._leadership.may_send(now_ms=now_ms):
                    again_ms = lane.step()
                else:
                    lane.settle()
                is_away = False
            except StoreError as error:
                if not is_away:
                    _log.warning("output %s waits for the store: %s", lane.output.name, error)
                is_away = True
            except Exception as error:  # noqa: BLE001 - a fault must not end the alerts of an output
                _log.error("output %s: internal fault (%s)", lane.output.name, type(error).__name__)
            wait_ms = min(again_ms - self._now_ms(), POLL_MS)
            if wait_ms > 0:
                wake.wait(wait_ms / 1000)
