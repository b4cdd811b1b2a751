"""One open file, plain or compressed: read on from an offset, noticing when it is truncated.

Offsets count unpacked bytes, so a place in a log holds on when its file is compressed.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from ingest.sources.base import CoverageSink
from ingest.sources.unpack import CorruptStreamError, is_packed, unpack
from ingest.tail.identity import FREED, HEAD_BYTES, KNOWN_BYTES, FileIdentity, identity_of

READ_BYTES: Final = 256 * 1024
"""Most bytes read at once: about a core's second-level cache."""


class Opened(Protocol):
    """A file of a log while it is read."""

    path: Path
    offset: int
    begins_at: int
    """The offset that reading began at: the one asked for, or the end of what is there."""
    is_finished: bool
    """True if nothing can be added to it any more."""

    def has_content(self) -> bool:
        """Tell whether anything was written to it yet."""
        ...

    def is_known(self) -> bool:
        """Tell whether it begins with enough to be known by, also as a copy."""
        ...

    def read(self) -> bytes:
        """Return what comes next, b"" when nothing does now."""
        ...

    def left_bytes(self) -> int:
        """Return how much of it is not read, as it lies on disk."""
        ...

    def is_truncated(self) -> bool:
        """Tell whether the file holds something else now than what was read."""
        ...

    def identity(self) -> FileIdentity:
        """Return which file it is."""
        ...

    def modified_ns(self) -> int:
        """Return when it was last written to."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class PlainFile:
    """A file that may still grow. Raises OSError when it cannot be opened."""

    is_finished = False

    def __init__(self, path: Path, *, salt: bytes, offset: int = 0) -> None:
        self.path = path
        self._salt = salt
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        status = os.fstat(self._descriptor)
        self.offset = self.begins_at = min(offset, status.st_size)
        self.device, self.inode = status.st_dev, status.st_ino
        self._head = os.pread(self._descriptor, HEAD_BYTES, 0)
        self.has_head = True

    @property
    def size(self) -> int:
        """How large it is now."""
        return os.fstat(self._descriptor).st_size

    @property
    def descriptor(self) -> int:
        """The file descriptor, for whoever owns the file."""
        return self._descriptor

    @property
    def is_deleted(self) -> bool:
        """Tell whether it has no name any more."""
        return os.fstat(self._descriptor).st_nlink == 0

    def has_content(self) -> bool:
        """Tell whether anything was written to it yet."""
        return self.size > 0

    def is_known(self) -> bool:
        """Tell whether it begins with enough to be known by, also as a copy."""
        return len(self._head) >= KNOWN_BYTES or not self.has_head

    def read(self) -> bytes:
        """Return what comes next, b"" at the end or when the file was truncated."""
        block = os.pread(self._descriptor, READ_BYTES, self.offset)
        # looked at behind the read: what was read before a truncation is what the file held
        if not block or self._has_changed():
            return b""
        self.offset += len(block)
        return block

    def left_bytes(self) -> int:
        """Return how much of it is not read."""
        return max(0, self.size - self.offset)

    def is_truncated(self) -> bool:
        """Tell whether it is shorter than what was read, or begins differently.

        Of a file whose head was freed: whether it begins with anything but FREED.
        """
        return self.size < self.offset or self._has_changed()

    def identity(self) -> FileIdentity:
        """Return which file it is."""
        return identity_of(self.device, self.inode, self._head, self._salt)

    def modified_ns(self) -> int:
        """Return when it was last written to."""
        return os.fstat(self._descriptor).st_mtime_ns

    def forget_head(self) -> None:
        """Know it by its inode from now on, and by FREED: what it began with is freed."""
        self.has_head = False
        self._head = b""

    def close(self) -> None:
        """Let go of it."""
        os.close(self._descriptor)

    def _has_changed(self) -> bool:
        if not self.has_head:
            return os.pread(self._descriptor, len(FREED), 0) != FREED
        head = os.pread(self._descriptor, HEAD_BYTES, 0)
        if not head.startswith(self._head):
            return True
        self._head = head
        return False


class PackedFile:
    """A compressed file, read once. What is damaged ends it, counted as `truncated_stream`."""

    is_finished = True

    def __init__(self, path: Path, *, salt: bytes, coverage: CoverageSink, offset: int = 0) -> None:
        self.path = path
        self.offset = 0
        self.begins_at = self._skip = offset
        self._coverage = coverage
        status = path.stat()
        self._modified_ns = status.st_mtime_ns
        self._left_bytes = status.st_size
        self._identity = identity_of(status.st_dev, status.st_ino, head_of(path).content, salt)
        self._blocks = _Blocks(path)

    def has_content(self) -> bool:
        """Return True: nobody packs an empty file."""
        return True

    def is_known(self) -> bool:
        """Return True: nothing is written to it any more."""
        return True

    def read(self) -> bytes:
        """Return the next unpacked bytes behind the offset that it was opened at."""
        while True:
            try:
                block = next(self._blocks, b"")
            except (CorruptStreamError, OSError):
                self._coverage.broken("truncated_stream")
                block = b""
            if not block:
                self.offset = max(self.offset, self._skip)
                self._left_bytes = 0
                return b""
            begin = self.offset
            self.offset += len(block)
            if self.offset > self._skip:
                return block[max(0, self._skip - begin) :]

    def left_bytes(self) -> int:
        """Return its size until it is read to its end."""
        return self._left_bytes

    def is_truncated(self) -> bool:
        """False: it is not written to any more."""
        return False

    def identity(self) -> FileIdentity:
        """Return which file it is; its head is that of what was packed."""
        return self._identity

    def modified_ns(self) -> int:
        """Return when it was last written to."""
        return self._modified_ns

    def close(self) -> None:
        """Let go of it."""
        self._blocks.close()


class Head(NamedTuple):
    """The first bytes of a file, unpacked if it is compressed."""

    content: bytes
    is_packed: bool


def head_of(path: Path) -> Head:
    """Return the head of a file; one without content if it cannot be read."""
    try:
        with path.open("rb") as stream:
            start = stream.read(HEAD_BYTES)
        if not is_packed(start):
            return Head(start, is_packed=False)
        head = b""
        with contextlib.closing(_Blocks(path)) as blocks:
            for block in blocks:
                head += block
                if len(head) >= HEAD_BYTES:
                    break
        return Head(head[:HEAD_BYTES], is_packed=True)
    except (OSError, CorruptStreamError):
        return Head(b"", is_packed=False)


def open_log(path: Path, *, salt: bytes, coverage: CoverageSink, offset: int = 0) -> Opened:
    """Open a file of a log at an offset; compression is recognised by its first bytes."""
    with path.open("rb") as stream:
        packed = is_packed(stream.read(4))
    if packed:
        return PackedFile(path, salt=salt, coverage=coverage, offset=offset)
    return PlainFile(path, salt=salt, offset=offset)


class _Blocks(Iterator[bytes]):
    """The unpacked bytes of a compressed file, block by block, until it is closed."""

    def __init__(self, path: Path) -> None:
        self._stream = path.open("rb")
        self._unpacked = unpack(iter(lambda: self._stream.read(READ_BYTES), b""), name=str(path))

    def __next__(self) -> bytes:
        for block in self._unpacked:
            if block:
                return block
        raise StopIteration

    def close(self) -> None:
        """Let go of the file."""
        self._stream.close()
