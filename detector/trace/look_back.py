"""Looks back in the background for the sources of contradictions: one at a time, within bounds.

A worker must not stop for a scan of a day, so this runs where findings are kept. A finding that is
not looked back for loses nothing: its text names the command that does the same by hand.
"""

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from detector.config.root import Settings
from detector.errors import BleedwatchError
from detector.finding import Finding
from detector.trace.model import Traced
from detector.trace.response import Wanted
from detector.trace.stream import StreamTrace
from ingest.broker import Reader
from ingest.sealing import KeyRing
from ingest.stream import Clock
from ingest.topics import topic_names

RULES: Final = frozenset({"BW101", "BW102", "BW103", "BW104"})
"""Contradictions: the response may hold text of any tenant that the pool has ever served."""

MAX_WAITING: Final = 64
"""Findings that wait their turn; at two minutes each that is two hours. More are turned away."""

_log = logging.getLogger(__name__)


class LookedBack(NamedTuple):
    """What came of one finding: the sources, or why there are none to tell."""

    finding_id: str
    traced: Traced | None
    problem: str | None = None


class LookBack:
    """A thread of its own that traces the responses of findings and hands on what it found.

    `open_reader` gives a reader for each look-back, `ring` the keys of the moment, and `tell` is
    called from the thread, once for every finding taken. `budget_ms` bounds each one.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        open_reader: Callable[[], Reader],
        ring: Callable[[], KeyRing],
        tell: Callable[[LookedBack], None],
        clock: Clock = time.monotonic,
    ) -> None:
        self._settings = settings
        self._open_reader = open_reader
        self._ring = ring
        self._tell = tell
        self._clock = clock
        self._waiting: queue.Queue[Finding | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._run, name="look-back", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def ask(self, finding: Finding) -> bool:
        """Queue a finding; False if it is no contradiction or too many wait. Never blocks."""
        if finding.rule not in RULES:
            return False
        try:
            self._waiting.put_nowait(finding)
        except queue.Full:
            return False
        return True

    def close(self, timeout_s: float) -> bool:
        """Finish the one in hand, let go of the others; True if that was in time."""
        while True:
            try:
                self._waiting.get_nowait()
            except queue.Empty:
                break
        self._waiting.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def look_back(self, finding: Finding) -> LookedBack:
        """Trace the response of one finding now, in this thread. Raises nothing of our errors."""
        try:
            return LookedBack(finding.id, self._traced(finding))
        except BleedwatchError as error:
            return LookedBack(finding.id, None, str(error))

    def _traced(self, finding: Finding) -> Traced:
        sink = finding.sink
        reader = self._open_reader()
        try:
            trace = StreamTrace(
                reader,
                self._ring(),
                self._settings,
                topic=topic_names(self._settings.kafka.topic_prefix).sequences,
                until_s=self._clock() + self._settings.trace.budget_ms / 1000,
                clock=self._clock,
            )
            wanted = Wanted(sink.request_id, sink.tenant, finding.kv_pool)
            return trace.trace(wanted, sought_from_ms=sink.started_at_ms)
        finally:
            reader.close()

    def _run(self) -> None:
        while (finding := self._waiting.get()) is not None:
            try:
                self._tell(self.look_back(finding))
            except Exception as error:  # noqa: BLE001 - the next finding must have its turn
                _log.error("a look-back failed: %s", type(error).__name__)
