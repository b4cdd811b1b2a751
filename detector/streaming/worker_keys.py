"""The keys of a worker, read again while it runs; a key file that cannot be read is told once."""

import logging
import time

from detector.sketch.token_table import Keys
from ingest.key_rotation import RotatingKeys, SealingSettings
from ingest.sealing import KeyRing
from ingest.stream import Clock

_log = logging.getLogger(__name__)


class WorkerKeys:
    """Gives the ring of the moment; raises KeyFileError when made from a file that is none."""

    def __init__(
        self, key_file: str, settings: SealingSettings, *, clock: Clock = time.monotonic
    ) -> None:
        self._clock = clock
        self._rotating = RotatingKeys(key_file, settings, now_s=clock())
        self._told: str | None = None

    @property
    def current(self) -> Keys:
        """The keys of the current secret, as of the last time that `ring` was asked for."""
        return self._rotating.current

    def ring(self) -> KeyRing:
        """Return the ring; the key files are read again from time to time."""
        ring = self._rotating.ring(self._clock())
        problem = None if self._rotating.problem is None else str(self._rotating.problem)
        if problem is not None and problem != self._told:
            _log.warning("the secrets held before stay in use: %s", problem)
        self._told = problem
        return ring

    def unreadable(self) -> bool:
        """True while a key file cannot be read: nothing under a new secret would be opened."""
        return self._rotating.problem is not None
