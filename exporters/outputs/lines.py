"""The output of JSON lines: to standard output, or appended to a file.

A file is opened for every line, so one that was moved away is made again.
"""

import os
import sys
from typing import Final

from exporters.outputs.contract import Delivered, Outcome, Retry
from exporters.outputs.formats import native
from exporters.outputs.notification import Notification
from exporters.outputs.settings import StdoutSettings

_OWNER_WRITES_GROUP_READS: Final = 0o640


class LinesOutput:
    """Writes the native form, one notification on each line."""

    resend_ms: int | None = None

    def __init__(self, settings: StdoutSettings) -> None:
        self.name = settings.name
        self._path = settings.path

    def send(self, notification: Notification, *, at_ms: int) -> Outcome:  # noqa: ARG002 - it has its time
        """Write a line; a file is on disk before this returns."""
        line = native.encode(notification) + b"\n"
        try:
            if self._path is None:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            else:
                self._append(self._path, line)
        except (OSError, ValueError, AttributeError):
            return Retry("the line could not be written")
        return Delivered("written")

    def close(self) -> None:
        """Nothing stays open between two lines."""

    @staticmethod
    def _append(path: str, line: bytes) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(path, flags, _OWNER_WRITES_GROUP_READS)
        with os.fdopen(descriptor, "wb") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
