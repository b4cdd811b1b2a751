"""Takes the CR off the lines of a vLLM log that end with CR LF, and off those only.

vLLM breaks a message into lines: each begins with the prefix of the record and ends with CR LF, the
last one with LF. So where lines end with LF, a CR says that the message goes on, and what follows
may be what a client has sent, made to look like records. Where lines end with CR LF, as behind a
terminal, every line has that CR.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from ingest.sources.base import CoverageSink
from ingest.sources.lines import Lines
from ingest.sources.vllm_lines import opening_of
from ingest.tail.splitter import Line

SURE_CHANGES: Final = 3
"""So many messages in a row are never broken off; then lines that still come end with CR LF."""

MOST_HELD_BYTES: Final = 16 * 1024 * 1024
"""How much of a pipe waits until it has told: as much as is put together of one message."""

MOST_WRITERS: Final = 64


class LineEnds:
    """Learns from the lines of a log, one after the other, whether they end with CR LF.

    Only lines of records count. One of them without CR proves that a CR is a mark; only the
    very last line may be cut off, so another must follow. For CR LF speaks a writer (what stands
    before the level, such as a process) that goes on with another prefix when no message of its own
    has ended: it writes one message at a time. Under a single prefix all may be one message.
    """

    def __init__(self) -> None:
        self.are_marks = False
        """True once it is proved that a CR is a mark. What follows never changes that."""
        self._prefixes: dict[bytes, bytes] = {}
        self._changes = 0
        self._is_bare = False

    @property
    def are_cr_lf(self) -> bool:
        """True if lines end with CR LF as far as can be told."""
        return not self.are_marks and self._changes > 0

    @property
    def is_open(self) -> bool:
        """True while lines with CR have come and may be either."""
        return not self.are_marks and bool(self._prefixes) and self._changes < SURE_CHANGES

    def see(self, raw: bytes) -> None:
        """Learn from the next line."""
        self.are_marks |= self._is_bare
        if self.are_marks or (raw.endswith(b"\r") and self._changes >= SURE_CHANGES):
            return
        opening = opening_of(raw)
        if opening is None:
            return
        if not opening.continues:
            self._is_bare = True
            self.are_marks = self._changes == 0
        elif self._prefixes.get(opening.writer, opening.prefix) != opening.prefix:
            self._changes += 1
        if opening.writer in self._prefixes or len(self._prefixes) < MOST_WRITERS:
            self._prefixes[opening.writer] = opening.prefix

    def end(self, *, is_cut_off: bool) -> None:
        """Learn that no line comes any more, and whether the last one has no line feed."""
        self.are_marks |= self._is_bare and not is_cut_off


def end_with_cr(lines: Iterable[Line], log: Lines) -> bool:
    """Tell whether all lines of a file end with CR LF; `log` is where they come from.

    The first record without CR ends the search, so only files with CR LF are read to their end.
    """
    ends = LineEnds()
    for _, content in lines:
        ends.see(content)
        if ends.are_marks:
            return False
    ends.end(is_cut_off=log.is_cut_off)
    return ends.are_cr_lf


def without_cr(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines without the CR at their end."""
    return ((number, content.removesuffix(b"\r")) for number, content in lines)


def as_they_come(lines: Iterable[Line], log: Lines, coverage: CoverageSink) -> Iterator[Line]:
    """Yield the lines of a pipe as soon as they have told how they end, without a CR of CR LF.

    Lines that may be either wait, up to a bound. Where CR LF turns out wrong later, marks are marks
    from there on, and that is counted: what was read before may be what clients have sent.
    """
    ends = LineEnds()
    held: list[Line] = []
    size = 0
    had_cr_lf = False
    for line in lines:
        ends.see(line[1])
        held.append(line)
        size += len(line[1])
        if had_cr_lf and not ends.are_cr_lf:
            coverage.broken("line_ends_changed", line[0])
        if ends.is_open and size <= MOST_HELD_BYTES:
            continue
        had_cr_lf = ends.are_cr_lf
        yield from without_cr(held) if had_cr_lf else held
        held.clear()
    ends.end(is_cut_off=log.is_cut_off)
    yield from without_cr(held) if ends.are_cr_lf else held
