"""An engine that writes its log without end from a thread, while others rotate it anywhere."""

import threading
import time
from pathlib import Path
from random import Random
from typing import Final, Self

from tests.e2e.traffic import WRITERS, pairs
from tests.sidecar.process import SidecarProcess
from tests.streams.process import until
from tests.unit.growing_log import GrowingLog, pack

PAIRS: Final = 20
PAUSE_S: Final = 0.004
"""Between two writes of up to CHUNK_BYTES: about half a megabyte a second."""

CHUNK_BYTES: Final = 4096
LAST: Final = b"INFO: the engine goes on\n"
"""A line of no request."""

ROTATE_EVERY: Final = 150
"""Writes between two rotations on average."""


class LogWriter:
    """Appends traffic in pieces that end anywhere; `whole` keeps all that was written.

    Rotates by rename and by copytruncate in the middle of lines, and packs what was rotated.
    Begins once `follower` has written a checkpoint, if one is given.
    """

    def __init__(
        self,
        log: Path,
        *,
        log_format: str,
        seed: int,
        rotates: bool = True,
        follower: SidecarProcess | None = None,
    ) -> None:
        self.whole = log.parent.parent / "whole.log"
        self.rotations = 0
        self._log = GrowingLog(log)
        self._format = log_format
        self._chance = Random(seed)
        self._rotates = rotates
        self._follower = follower
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write, name="engine", daemon=True)

    def __enter__(self) -> Self:
        if self._follower is not None:  # from its first checkpoint on it must lose nothing
            self._follower.await_start()
            until((self._log.path.parent.parent / "checkpoint").exists)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Finish what has begun and stop writing; a second time does nothing."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        self._log.write(LAST)  # a log that was emptied last has nothing to say until it goes on
        self._log.close()

    def _write(self) -> None:
        with self.whole.open("ab") as whole:
            batch = 0
            while not self._ended.is_set():
                batch += 1
                content = self._content(batch)
                whole.write(content)
                while content:
                    size = self._chance.randrange(1, CHUNK_BYTES)
                    self._log.write(content[:size])
                    content = content[size:]
                    if not self._ended.is_set():
                        time.sleep(PAUSE_S)
                        self._maybe_rotate()

    def _content(self, batch: int) -> bytes:
        path = self._log.path.parent.parent / "batch"
        WRITERS[self._format](path, pairs(PAIRS, seed=batch))
        return path.read_bytes()

    def _maybe_rotate(self) -> None:
        if not self._rotates or self._chance.randrange(ROTATE_EVERY):
            return
        self.rotations += 1
        if self._chance.random() < 0.5:
            self._log.rotate()
        else:
            self._log.copy_truncate()
        older = self._log.path.with_name(f"{self._log.path.name}.2")
        if older.exists():  # kubelet and logrotate leave the newest as it is
            pack(older)
