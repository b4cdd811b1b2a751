"""Injects bleeds into the cluster while a soak lasts, whatever else goes wrong."""

import contextlib
import threading
from random import Random
from typing import Final

from detector.sample.language import Language
from tests.cluster import faults
from tests.cluster.process import Process
from tests.cluster.site import Site

INJECT_EACH_S: Final = 12.0


class Injector:
    """Injects a bleed every few seconds in a thread, whether or not anything is away."""

    def __init__(self, site: Site, engine: Process, language: Language, rng: Random) -> None:
        self.bleeds: list[faults.Bleed] = []
        self._site, self._engine, self._language, self._rng = site, engine, language, rng
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="injector")

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Let the one in flight finish."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(INJECT_EACH_S):
            if self._engine.is_running:
                self._inject()

    def _inject(self) -> None:
        with contextlib.suppress(OSError, AssertionError):  # it may be killed in between
            made = faults.bleed(self._site, self._engine, self._language, self._rng)
            self.bleeds += [] if made is None else [made]
