"""The sidecar inside a `run all` that listens: hashes and packs what is pushed, for the stream."""

import threading
import time
from collections.abc import Callable
from typing import Final

from detector.config.root import Settings
from detector.errors import BleedwatchError
from detector.sidecar import HashKeys, Running, composed, doors
from detector.sidecar_beside import push_health
from exporters.sidecar_state import SidecarState
from ingest.push.app import PushApp
from ingest.push.body import Bodies
from ingest.push.intake import PushIntake
from ingest.push.pressure import BackPressure
from ingest.push.received import Received, ReceivedOutlet
from ingest.sidecar_beside import BesideHealth
from ingest.sidecar_settings import SidecarSettings

START_S: Final = 30.0
"""A start takes a fraction of a second."""


class PushInside:
    """Runs in a thread of its own from `start` to `end`; what is pushed goes to `received`.

    It follows no logs and keeps no files: those of the settings belong to sidecars beside engines.
    """

    def __init__(self, settings: Settings, received: Received, bodies: Bodies) -> None:
        self._settings = settings.model_copy(update={"sidecar": SidecarSettings()})
        self._received = received
        self._running: Running | None = None
        self._ending = threading.Event()
        self._begun = threading.Event()
        self.error: BleedwatchError | None = None
        """Why it has ended before its time."""
        keys = HashKeys(settings)
        self._intake = PushIntake(
            table=lambda: keys.table(time.monotonic()),
            door=doors(settings),
            most_bytes=settings.push.waiting_bytes,
            holds=self._is_full,
        )
        pressure = BackPressure(settings.backpressure, clock=time.monotonic)
        self.app = PushApp(self._intake, pressure, bodies, live=self.not_live, ready=self.not_ready)
        self._thread = threading.Thread(target=self._run, name="pushes", daemon=True)

    def start(self) -> None:
        """Begin; what cannot begin is in `error`."""
        self._thread.start()
        self._begun.wait(START_S)

    def end(self) -> None:
        """Give everything that was pushed to the stream."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(self._settings.sidecar.grace_ms / 1000)

    def not_live(self) -> list[str]:
        """Return why the process should be restarted."""
        if self._running is None:
            return [] if self.error is None else [str(self.error)]
        return self._running.board.not_live()

    def not_ready(self) -> list[str]:
        """Return why pushes do not reach the stream."""
        if self._running is None:
            return ["it is starting" if self.error is None else str(self.error)]
        return self._running.board.not_ready()

    def state(self) -> SidecarState:
        """Return how it is, for metrics."""
        return SidecarState() if self._running is None else self._running.board.state()

    def _is_full(self) -> bool:
        return self._running is None or self._running.sidecar.sending.is_full

    def _run(self) -> None:
        try:
            with composed(
                self._settings,
                lambda: ReceivedOutlet(self._received),
                feeds=[self._intake.feed],
                beside_of=lambda: BesideHealth(push=push_health(self._intake)),
            ) as running:
                self._running = running
                self._begun.set()
                running.sidecar.run(self._ending.is_set)
        except BleedwatchError as error:
            self.error = error
        finally:
            self._begun.set()

    def until(self, stopped: Callable[[], bool]) -> Callable[[], bool]:
        """Return the same; raises what has ended this before its time."""

        def ended() -> bool:
            if self.error is not None:
                raise self.error
            has_stopped = stopped()
            if has_stopped:
                self.end()
            return has_stopped

        return ended
