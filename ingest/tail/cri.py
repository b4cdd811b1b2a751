"""Takes the prefix of a container runtime off its lines, and puts long lines together again.

containerd and CRI-O write `TIME STREAM TAG TEXT` and cut what is longer than 16 KiB: all pieces but
the last are tagged P. A line without such a prefix passes as it is.
"""

from ingest.sources.base import MAX_LINE_BYTES, CoverageSink
from ingest.tail.splitter import RUNTIME_PREFIX, Line


class RuntimeLines:
    """Lines of one container log; holds what is not whole yet, each stream by itself."""

    def __init__(self, *, coverage: CoverageSink, max_line_bytes: int = MAX_LINE_BYTES) -> None:
        self._coverage = coverage
        self._limit = max_line_bytes
        self._held: dict[bytes, tuple[int, bytearray]] = {}

    def take(self, line: Line) -> Line | None:
        """Return a line without its prefix, None while it goes on."""
        at, content = line
        found = RUNTIME_PREFIX.match(content)
        if found is None:
            return line
        stream, text = found[1], content[found.end() :]
        if found[2] == b"F" and stream not in self._held:
            return at, text
        first, held = self._held.setdefault(stream, (at, bytearray()))
        if len(held) <= self._limit:
            held += text
        if found[2] == b"P":
            return None
        del self._held[stream]
        if len(held) > self._limit:
            self._coverage.broken("line_too_long")
            return None
        return first, bytes(held)

    def unfinished(self) -> list[bytes]:
        """Return what has come of lines that are not whole yet."""
        return [bytes(held) for _, held in self._held.values()]

    def oldest_line(self) -> int | None:
        """Return where the oldest line begins that is not whole yet."""
        return min((first for first, _ in self._held.values()), default=None)
