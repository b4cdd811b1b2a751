"""Lines of a pipe: standard input, or a FIFO that writers open and leave again.

What was taken from a pipe is nowhere else. It is lost with this process until it is acknowledged.
"""

import os
import select
import stat
from pathlib import Path
from typing import Final

from ingest.sources.base import CoverageSink
from ingest.tail.siblings import FileMark
from ingest.tail.splitter import Line, Splitter

READ_BYTES: Final = 64 * 1024
"""What a pipe holds unless somebody has made it larger."""

POLL_BYTES: Final = 1024 * 1024


class PipeLog:
    """The lines of an open descriptor, which must be read quickly: who writes waits for us.

    `ends` tells that no writer comes again once all have left, as with standard input.
    """

    can_read_again = False

    def __init__(self, descriptor: int, *, name: str, coverage: CoverageSink, ends: bool) -> None:
        self.name = name
        self._descriptor = descriptor
        self._ends = ends
        self._splitter = Splitter(0, coverage=coverage)
        self._is_over = False

    @property
    def next_at(self) -> int:
        """Position of the first line that was not returned yet."""
        return self._splitter.next_at

    @property
    def behind_bytes(self) -> int:
        """Return 0: a pipe does not tell."""
        return 0

    @property
    def is_behind(self) -> bool:
        """Return False: a pipe does not tell."""
        return False

    @property
    def is_there(self) -> bool:
        """True: it was opened."""
        return True

    @property
    def is_over(self) -> bool:
        """True once all writers have left and none can come."""
        return self._is_over

    def poll(self, now_s: float) -> list[Line]:  # noqa: ARG002 - nothing here depends on time
        """Return lines that have come; never waits."""
        lines: list[Line] = []
        budget = POLL_BYTES
        while budget > 0 and not self._is_over and self._is_ready():
            try:
                block = os.read(self._descriptor, READ_BYTES)
            except BlockingIOError:
                break
            if not block:
                self._is_over = self._ends
                lines += self._splitter.end()
                break
            budget -= len(block)
            lines += self._splitter.feed(block)
        return lines

    def finish(self) -> list[Line]:
        """Return what stands behind the last newline."""
        return self._splitter.end()

    def discard(self) -> int:
        """Throw away the lines that have come; return how many bytes that were."""
        before = self._splitter.position
        self.poll(0.0)
        return self._splitter.position - before

    def place(self, position: int) -> FileMark | None:  # noqa: ARG002 - there is no such place
        """Return None: nothing can be read again."""
        return None

    def release(self, position: int) -> None:
        """Do nothing: a pipe keeps nothing."""

    def close(self) -> None:
        """Let go of the descriptor, unless it is standard input, which is not ours."""
        if not self._ends:
            os.close(self._descriptor)

    def _is_ready(self) -> bool:
        return bool(select.select([self._descriptor], [], [], 0)[0])


def is_fifo(path: Path) -> bool:
    """Tell whether a path is a FIFO."""
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except OSError:
        return False


def open_fifo(path: Path, *, coverage: CoverageSink) -> PipeLog:
    """Open a FIFO without waiting for a writer. Raises OSError when that is not possible."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    return PipeLog(descriptor, name=str(path), coverage=coverage, ends=False)
