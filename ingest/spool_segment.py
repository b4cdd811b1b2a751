"""One segment of the spool: a file of checksummed messages, and how far they are acknowledged.

    8 bytes  "BWSPOOL1"
    8 bytes  offset up to which all is acknowledged, little-endian
    then for each message: 4 bytes length, 4 bytes CRC-32, the message as MessagePack

What a message holds is sealed or is metadata, so the file tells no more than the topic does.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ingest.broker import Message

MAGIC: Final = b"BWSPOOL1"
_ACKNOWLEDGED: Final = struct.Struct("<Q")
_FRAME: Final = struct.Struct("<II")
START: Final = len(MAGIC) + _ACKNOWLEDGED.size
"""Offset of the first message."""

_decoder: Final = msgspec.msgpack.Decoder(Message)


class Stored(NamedTuple):
    """One message in a segment, and where the next one begins."""

    message: Message
    end: int


def frame(message: Message) -> bytes:
    """Return the bytes that a message takes in a segment."""
    body = msgspec.msgpack.encode(message)
    return _FRAME.pack(len(body), zlib.crc32(body)) + body


class Segment:
    """A file that is open for reading and appending; for one thread. Methods raise OSError.

    `end` is where the next message goes, `acknowledged` where the first one lies that is not
    acknowledged, `count` how many these are.
    """

    def __init__(self, path: Path, number: int, descriptor: int) -> None:
        self.path = path
        self.number = number
        self.end = START
        self.acknowledged = START
        self.count = 0
        self.cut_bytes = 0
        """What was at the end and is no whole message: a writer was killed, or the disk erred."""
        self._descriptor = descriptor

    @classmethod
    def create(cls, path: Path, number: int) -> "Segment":
        """Make a new file; a failure leaves none behind."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        segment = cls(path, number, os.open(path, flags, 0o600))
        try:
            _write(segment._descriptor, MAGIC + _ACKNOWLEDGED.pack(START), 0)
        except OSError:
            segment.remove()
            raise
        return segment

    @classmethod
    def open(cls, path: Path, number: int) -> "Segment":
        """Open a file of an earlier process; whatever follows its last whole message is cut off."""
        segment = cls(path, number, os.open(path, os.O_RDWR | os.O_CLOEXEC))
        try:
            segment._recover()
        except BaseException:
            segment.close()
            raise
        return segment

    def append(self, framed: bytes) -> int:
        """Add a message, return where it ends; what was half written is taken back."""
        try:
            _write(self._descriptor, framed, self.end)
        except OSError:
            os.ftruncate(self._descriptor, self.end)
            raise
        self.end += len(framed)
        self.count += 1
        return self.end

    def take_back(self, end: int, count: int) -> None:
        """Cut the last `count` messages off, which begin at `end`: they are not safe after all."""
        os.ftruncate(self._descriptor, end)
        self.end = end
        self.count -= count

    def sync(self) -> None:
        """Return once the disk has it."""
        os.fdatasync(self._descriptor)

    def read(self, offset: int) -> Stored | None:
        """Return the message that begins at an offset; None if no whole one does."""
        head = os.pread(self._descriptor, _FRAME.size, offset)
        if len(head) < _FRAME.size:
            return None
        length, checksum = _FRAME.unpack(head)
        if not length or length > self._size() - offset - _FRAME.size:
            return None
        body = os.pread(self._descriptor, length, offset + _FRAME.size)
        if len(body) < length or zlib.crc32(body) != checksum:
            return None
        try:
            return Stored(_decoder.decode(body), offset + _FRAME.size + length)
        except (msgspec.DecodeError, RecursionError):
            return None

    def messages(self, offset: int) -> Iterator[Stored]:
        """Yield the messages from an offset on."""
        while offset < self.end and (stored := self.read(offset)) is not None:
            yield stored
            offset = stored.end

    def acknowledge(self, end: int) -> None:
        """Note that the first message that was not acknowledged is now; it ends at `end`.

        The note is not synced: a power cut may repeat what it said, and loses nothing.
        """
        self.acknowledged = end
        self.count -= 1
        _write(self._descriptor, _ACKNOWLEDGED.pack(end), len(MAGIC))

    def remove(self) -> None:
        """Delete the file."""
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)

    def _recover(self) -> None:
        size = self._size()
        head = os.pread(self._descriptor, START, 0)
        if len(head) < START or not head.startswith(MAGIC):
            self.cut_bytes = size
            return
        (noted,) = _ACKNOWLEDGED.unpack(head[len(MAGIC) :])
        self.end = size
        offset, passed = START, 0
        for stored in self.messages(START):
            offset = stored.end
            passed += offset <= noted
            self.count += 1
            if offset == noted:
                self.acknowledged = noted
        self.count -= passed if self.acknowledged == noted else 0
        self.end = offset
        if size > offset:
            self.cut_bytes = size - offset
            os.ftruncate(self._descriptor, offset)

    def _size(self) -> int:
        return os.fstat(self._descriptor).st_size


def _write(descriptor: int, content: bytes, offset: int) -> None:
    """Write all of it, also when the system takes it in pieces."""
    view = memoryview(content)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view = view[written:]
        offset += written
