"""Whether engines still run what a passed probe has tested: looked at from time to time."""

import logging
import threading
import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from detector.doctor.engine_evidence import ask
from detector.errors import BleedwatchError
from detector.probe.fingerprint import changes, fingerprint
from detector.probe.record import read_record
from ingest.scrape.scraper import make_scraper
from ingest.scrape.settings import ScrapeSettings
from ingest.scrape.target import Target

_log = logging.getLogger(__name__)

INTERVAL_S: Final = 60.0
"""A configuration changes with a restart, which takes longer than that."""

CLOSE_S: Final = 3.0
"""How long closing waits for a look that is under way."""


class _Watched(NamedTuple):
    target: Target
    file: str


class ProbeWatch:
    """Compares engines with the records of their probes, in a thread of its own.

    `stale` holds the engines that have a record: True if what runs is not what passed, or if
    nothing has passed. An engine that does not answer keeps what was known last.
    """

    def __init__(
        self, settings: ScrapeSettings, *, engine: str | None = None, kv_pool: str | None = None
    ) -> None:
        targets = make_scraper(settings, engine=engine, kv_pool=kv_pool).targets
        self._watched = [
            _Watched(target, given.probe_file)
            for target, given in zip(targets, settings.targets, strict=True)
            if given.probe_file is not None
        ]
        self._stale: dict[str, bool] = {}
        self._told: dict[str, str] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe-watch", daemon=True)

    def start(self) -> None:
        """Begin to look, if any engine has a record."""
        if self._watched:
            self._thread.start()

    def stale(self) -> Mapping[str, bool]:
        """Return the engines by name; from any thread."""
        return dict(self._stale)

    def look(self) -> None:
        """Compare every engine now; to be called by one thread."""
        for watched in self._watched:
            self._compare(watched)

    def close(self) -> None:
        """End the thread; a look under way is waited for a moment."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(CLOSE_S)

    def _run(self) -> None:
        self.look()
        while not self._stop.wait(INTERVAL_S):
            self.look()

    def _compare(self, watched: _Watched) -> None:
        engine = watched.target.identity.engine
        now = fingerprint(watched.target, ask(watched.target, now_ms=int(time.time() * 1000)))
        if now is None:
            return
        why = ""
        try:
            record = read_record(watched.file)
        except BleedwatchError as error:
            why = error.what
        else:
            if not record.passed:
                why = "the last probe has not passed"
            elif now not in record.configurations:
                different = [changes(one, now) for one in record.configurations]
                nearest = min(different, key=len, default=["everything"])
                why = f"changed since the last probe: {', '.join(nearest)}"
        self._stale[engine] = bool(why)
        if why and self._told.get(engine) != why:
            _log.warning("probe of engine %s is stale: %s", engine, why)
        self._told[engine] = why
