"""The output of JSON lines: to standard output, or appended to a file.

A file is opened for every line, so one that was moved away is made again. A line that does not fit
leaves nothing behind, and one that was cut off when the machine stopped spoils no other.
"""

import os
import stat
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
        try:
            before = os.fstat(descriptor)
            is_file = stat.S_ISREG(before.st_mode)
            begins = b"\n" if is_file and _is_cut_off(path, before.st_size) else b""
            try:
                _write(descriptor, begins + line)
                if is_file:
                    os.fsync(descriptor)  # pipes and terminals refuse it
            except OSError:
                if is_file:
                    os.ftruncate(descriptor, before.st_size)
                raise
        finally:
            os.close(descriptor)


def _is_cut_off(path: str, size: int) -> bool:
    """Whether the last line of a file has no end: whoever wrote it was killed, or had no room."""
    if size == 0:
        return False
    try:
        with open(path, "rb") as file:
            file.seek(size - 1)
            return file.read(1) not in {b"", b"\n"}
    except OSError:
        return False  # it may be ours to write and not to read


def _write(descriptor: int, data: bytes) -> None:
    """Write all of it. Unbuffered: a buffer would try the rest again while the file is closed."""
    while data:
        data = data[os.write(descriptor, data) :]
