"""Cuts what comes from a log into lines that know where in the log they begin."""

import re
from typing import Final

import msgspec

from ingest.sources.base import MAX_LINE_BYTES, CoverageSink
from ingest.sources.detect import is_engine_line

_LOOK_BYTES: Final = 512

Line = tuple[int, bytes]
"""Where it begins, in bytes since the log was first followed, and the line without its newline."""

_OBJECT: Final = re.compile(rb"\s*\{")


class Splitter:
    """Lines of one log, over all its files. A line above the bound is counted, not kept.

    `position` is what comes next, `next_at` where the line begins that is not complete yet. A line
    that a rotation has cut in two is put together, unless what follows is a record by itself.
    """

    def __init__(
        self, position: int, *, coverage: CoverageSink, max_line_bytes: int = MAX_LINE_BYTES
    ) -> None:
        self.position = position
        self.next_at = position
        self._coverage = coverage
        self._limit = max_line_bytes
        self._held = bytearray()
        self._seam_at: int | None = None

    @property
    def has_rest(self) -> bool:
        """True while a line is not complete."""
        return self.next_at < self.position

    def feed(self, block: bytes) -> list[Line]:
        """Return the lines that a block completes."""
        *ended, tail = block.split(b"\n")
        lines: list[Line] = []
        for piece in ended:
            size = self.position - self.next_at + len(piece)
            if self._held or self._seam_at is not None:
                lines += self._joined(piece, size)
            elif size <= self._limit:
                lines.append((self.next_at, piece))
            else:
                self._coverage.broken("line_too_long")
            self.position += len(piece) + 1
            self.next_at = self.position
        self.position += len(tail)
        if self.position - self.next_at <= self._limit:
            self._held += tail
        else:
            self._held.clear()
        return lines

    def seam(self) -> None:
        """Note that what comes next is of another file."""
        self._seam_at = self.position if self.has_rest else None

    def end(self) -> list[Line]:
        """Return what is left as a line: nothing comes any more."""
        if not self.has_rest:
            return []
        at, rest = self.next_at, bytes(self._held)
        self._held.clear()
        self.next_at = self.position
        self._seam_at = None
        return [(at, rest)] if rest else []

    def _joined(self, piece: bytes, size: int) -> list[Line]:
        """Put a line together from what is held and a piece."""
        whole, seam_at = bytes(self._held) + piece, self._seam_at
        self._held.clear()
        self._seam_at = None
        if size > self._limit:
            self._coverage.broken("line_too_long")
            return []
        if seam_at is not None:
            first, second = whole[: seam_at - self.next_at], whole[seam_at - self.next_at :]
            if is_record(second):
                return [(self.next_at, first), (seam_at, second)]
        return [(self.next_at, whole)]


def is_record(line: bytes) -> bool:
    """Tell whether a line is whole: it begins as an engine's lines do, or is a JSON object."""
    if is_engine_line(line[:_LOOK_BYTES]):
        return True
    if not _OBJECT.match(line):
        return False
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
