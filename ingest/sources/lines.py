"""A file, pipe or standard input as numbered lines: bounded, and unpacked on the fly.

Compression is recognised by its magic bytes, whatever the file is called.
"""

import io
import os
import stat
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

from detector.errors import InputError
from ingest.sources.base import MAX_LINE_BYTES, CoverageSink
from ingest.sources.unpack import CorruptStreamError, unpack

READ_BYTES: Final = 128 * 1024
"""Bytes asked for at once: a pipe's 64 KiB twice over, small next to a core's cache."""

HEAD_BYTES: Final = 4 * 1024 * 1024
"""How much `head` may hold: enough for one long record."""

_UTF8_MARK: Final = b"\xef\xbb\xbf"


class Lines:
    """Numbered lines of one stream, without their line feeds; iterate once.

    A line longer than `max_line_bytes` is skipped in constant memory and counted as
    `line_too_long`; a compressed stream that breaks off or is damaged ends there, counted as
    `truncated_stream` with the line it broke in. Empty lines are yielded, and so is a carriage
    return at the end of a line: it may belong to the log. Not for several threads.
    Raises InputError while iterating when the operating system cannot read on.
    """

    def __init__(
        self,
        stream: BinaryIO,
        *,
        coverage: CoverageSink,
        name: str = "-",
        total_bytes: int | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self.name = name
        self.total_bytes = total_bytes
        """Size of the file as it lies on disk, None for a pipe."""
        self.bytes_read = 0
        """Bytes taken from the file as it lies on disk: compressed ones when it is compressed."""
        self.is_cut_off = False
        """True once the last line has come and no line feed has ended it."""
        self.lost: str | None = None
        """Why the first stretch that could not be read was lost: the word that is counted."""
        self._stream = stream
        self._coverage = coverage
        self._limit = max_line_bytes
        self._number = 0
        self._ahead: deque[tuple[int, bytes]] = deque()
        self._rest = self._lines()

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        while self._ahead:
            yield self._ahead.popleft()
        yield from self._rest

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the stream; standard input itself, which is not ours, stays open."""
        self._stream.close()

    def head(self, count: int) -> list[bytes]:
        """Return up to `count` first lines without using them up: iteration starts at line 1 still.

        Reads until it has them, so it waits on a slow pipe.
        """
        held = sum(len(line) for _, line in self._ahead)
        while len(self._ahead) < count and held < HEAD_BYTES:
            numbered = next(self._rest, None)
            if numbered is None:
                break
            self._ahead.append(numbered)
            held += len(numbered[1])
        return [line for _, line in list(self._ahead)[:count]]

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        held = bytearray()
        size = 0
        try:
            for chunk in unpack(self._blocks(), name=self.name):
                *ended, tail = chunk.split(b"\n")
                for piece in ended:
                    size += len(piece)
                    yield from self._line(held + piece if held else piece, size)
                    held.clear()
                    size = 0
                size += len(tail)
                if size <= self._limit:
                    held += tail
                else:
                    held.clear()
        except CorruptStreamError:
            self._lose("truncated_stream", self._number + 1)
            return
        if size:
            self.is_cut_off = True
            yield from self._line(held, size)

    def _line(self, content: bytes | bytearray, size: int) -> Iterator[tuple[int, bytes]]:
        self._number += 1
        if size > self._limit:
            self._lose("line_too_long", self._number)
            return
        if self._number == 1 and content.startswith(_UTF8_MARK):
            content = content[len(_UTF8_MARK) :]
        yield self._number, bytes(content)

    def _lose(self, reason: str, line: int) -> None:
        self.lost = self.lost or reason
        self._coverage.broken(reason, line)

    def _blocks(self) -> Iterable[bytes]:
        # read1 returns what a pipe holds now; read would wait for a full block
        read = getattr(self._stream, "read1", self._stream.read)
        while True:
            try:
                block: bytes = read(READ_BYTES)
            except (OSError, ValueError) as error:
                raise _unreadable(self.name, error) from None
            if not block:
                return
            self.bytes_read += len(block)
            yield block


def open_lines(
    path: str | Path, *, coverage: CoverageSink, max_line_bytes: int = MAX_LINE_BYTES
) -> Lines:
    """Open a file, a FIFO or "-" (standard input). Raises InputError when that is not possible."""
    if str(path) == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed", where="-")
        # a reader of our own: one thread may wait in it while the program ends without it
        stdin = io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
        return Lines(stdin, coverage=coverage, max_line_bytes=max_line_bytes)
    try:
        stream = Path(path).open("rb")  # noqa: SIM115 - Lines closes it
    except (OSError, ValueError) as error:
        raise _unreadable(str(path), error) from None
    status = os.fstat(stream.fileno())
    return Lines(
        stream,
        coverage=coverage,
        name=str(path),
        total_bytes=status.st_size if stat.S_ISREG(status.st_mode) else None,
        max_line_bytes=max_line_bytes,
    )


def _unreadable(name: str, error: Exception) -> InputError:
    hint = "give a file that this user may read, or - for standard input"
    reason = (error.strerror if isinstance(error, OSError) else None) or "not a readable path"
    return InputError(f"cannot be read: {reason}", where=name, hint=hint)
