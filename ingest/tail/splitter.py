"""Cuts what comes from a log into lines that know where in the log they begin."""

import re
from collections import deque
from typing import Final

import msgspec

from ingest.sources.base import MAX_LINE_BYTES, CoverageSink
from ingest.sources.detect import is_engine_line

_LOOK_BYTES: Final = 512

Line = tuple[int, bytes]
"""Where it begins, in bytes since the log was first followed, and the line without its newline."""

MOST_SEAMS: Final = 100
"""Files that one line may go through: as many as a folder may keep."""

_OBJECT: Final = re.compile(rb"\s*\{")

RUNTIME_PREFIX: Final = re.compile(
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) "
    rb"(stdout|stderr) ([PF])(?::\S*)? "
)
"""What a container runtime writes before every line or piece of one: time, stream, tag."""


class Splitter:
    """Lines of one log, over all its files. A line above the bound is counted, not kept.

    `position` is what comes next, `next_at` where the line begins that is not complete yet. A line
    that rotations have cut is put together, unless what follows is a record by itself. A line
    begins behind the NUL bytes in front of it: they are a hole, where a log was freed.
    """

    def __init__(
        self, position: int, *, coverage: CoverageSink, max_line_bytes: int = MAX_LINE_BYTES
    ) -> None:
        self.position = position
        self.next_at = position
        self._coverage = coverage
        self._limit = max_line_bytes
        self._held = bytearray()
        self._seams: deque[int] = deque(maxlen=MOST_SEAMS)

    @property
    def has_rest(self) -> bool:
        """True while a line is not complete."""
        return self.next_at < self.position

    def feed(self, block: bytes) -> list[Line]:
        """Return the lines that a block completes."""
        *ended, tail = block.split(b"\n")
        lines: list[Line] = []
        for part in ended:
            piece = self._behind_hole(part)
            size = self.position - self.next_at + len(piece)
            if self._held or self._seams:
                lines += self._joined(piece, size)
            elif size <= self._limit:
                lines.append((self.next_at, piece))
            else:
                self._coverage.broken("line_too_long")
            self.position += len(piece) + 1
            self.next_at = self.position
        tail = self._behind_hole(tail)
        self.position += len(tail)
        if self.position - self.next_at <= self._limit:
            self._held += tail
        else:
            self._held.clear()
        return lines

    def seam(self) -> None:
        """Note that what comes next is of another file."""
        if self.has_rest:
            self._seams.append(self.position)

    def end(self) -> list[Line]:
        """Return what is left as a line: nothing comes any more."""
        if not self.has_rest:
            return []
        at, rest = self.next_at, bytes(self._held)
        self._held.clear()
        self.next_at = self.position
        self._seams.clear()
        return [(at, rest)] if rest else []

    def _behind_hole(self, piece: bytes) -> bytes:
        """Pass over the NUL bytes at the begin of a line; return what is behind them."""
        if self.has_rest or not piece.startswith(b"\0"):
            return piece
        content = piece.lstrip(b"\0")
        self.position += len(piece) - len(content)
        self.next_at = self.position
        return content

    def _joined(self, piece: bytes, size: int) -> list[Line]:
        """Put a line together from what is held and a piece; cut it where a record begins."""
        whole, seams = bytes(self._held) + piece, list(self._seams)
        self._held.clear()
        self._seams.clear()
        if size > self._limit:
            self._coverage.broken("line_too_long")
            return []
        lines: list[Line] = []
        for seam_at in reversed(seams):  # a record ends where the next one begins
            rest = whole[seam_at - self.next_at :]
            if is_record(rest):
                lines.append((seam_at, rest))
                whole = whole[: seam_at - self.next_at]
        return [(self.next_at, whole), *reversed(lines)]


def is_record(line: bytes) -> bool:
    """Tell whether a line is whole: it begins as an engine's or runtime's, or is a JSON object."""
    if RUNTIME_PREFIX.match(line) or is_engine_line(line[:_LOOK_BYTES]):
        return True
    if not _OBJECT.match(line):
        return False
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
