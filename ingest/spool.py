"""A bounded queue of messages on disk: what goes in comes out in order, also after a crash.

What is read stays until it is acknowledged. When there is no more room the oldest segment goes, and
what was in it is counted: the stream is blind for that time.
"""

import contextlib
import logging
import os
from collections import deque
from pathlib import Path
from typing import Final, NamedTuple

from detector.errors import BrokerError
from ingest.broker import Message
from ingest.folder_sync import sync_folder
from ingest.spool_counts import Dropped, SpoolCounts
from ingest.spool_folder import cannot_use, locked, no_room
from ingest.spool_segment import START, Segment, frame
from ingest.spool_settings import SpoolSettings

_log = logging.getLogger(__name__)

_SUFFIX: Final = ".spool"


class _Out(NamedTuple):
    """A message that was read and is not acknowledged yet; it ends at `end` of a segment."""

    segment: Segment
    message: Message
    end: int


class Spool:
    """The spool in a folder, locked for this process until it is closed; for one thread.

    Raises InputError when made if the folder cannot be used or another process has it.
    """

    def __init__(self, folder: str, settings: SpoolSettings) -> None:
        self._folder = Path(folder)
        self._settings = settings
        self._segments: list[Segment] = []
        self._unsynced: tuple[int, int] | None = None
        self._failure: OSError | None = None
        self._appended = 0  # since the last sync
        self._out: deque[_Out] = deque()
        self._dropped = Dropped()
        self._spooled = self._replayed = self._refused = 0
        self._lock = locked(self._folder)
        try:
            self._open()
        except OSError as error:
            self.close()
            raise cannot_use(self._folder, error) from None
        self._cut_bytes = sum(segment.cut_bytes for segment in self._segments)
        self._next_number = self._segments[-1].number + 1 if self._segments else 1
        self._cursor = self._first()
        for segment in list(self._segments):
            self._forget_if_done(segment)

    @property
    def place(self) -> tuple[int, int]:
        """Number of the segment and offset up to which has been read: names what `next` gave."""
        return self._cursor

    @property
    def is_drained(self) -> bool:
        """True if everything that is here has been read, acknowledged or not."""
        return self._peek() is None

    @property
    def counts(self) -> SpoolCounts:
        """A snapshot, for any thread."""
        segments = list(self._segments)
        return SpoolCounts(
            messages=sum(segment.count for segment in segments),
            bytes=sum(segment.end for segment in segments),
            spooled=self._spooled,
            replayed=self._replayed,
            dropped=dict(self._dropped.messages),
            dropped_bytes=self._dropped.bytes,
            dropped_times=self._dropped.times,
            refused=self._refused,
            cut_bytes=self._cut_bytes,
        )

    def append(self, message: Message) -> None:
        """Add a message; it is safe after the next `sync`. Raises BrokerError if there is no room.

        On a disk that is full, too, the oldest segment goes before a message is refused; none goes
        for one that is larger than the spool.
        """
        framed = frame(message)
        room = self._settings.max_bytes - len(framed) - START
        while self._used() > room >= 0 and self._make_room():
            pass
        if self._used() > room:
            self._refused += 1
            raise BrokerError(
                "the spool is full",
                where=str(self._folder),
                hint="raise spool.max_bytes, or bring the broker back",
            )
        while True:
            try:
                self._add(framed)
            except OSError as error:
                if self._make_room(keep=1):
                    continue
                self._refused += 1
                raise no_room(self._folder, error) from None
            self._appended += 1
            return

    def sync(self) -> None:
        """Return once everything appended is safe.

        Raises BrokerError if the disk could not keep all that was appended since the last time: it
        is taken back then, but for what lies in segments that were safe before the disk failed.
        """
        self._sync_newest()
        appended, self._appended = self._appended, 0
        failure, self._failure = self._failure, None
        if failure is not None:
            self._refused += appended
            raise no_room(self._folder, failure) from None
        self._spooled += appended

    def next(self) -> Message | None:
        """Read the next message, None while there is none. It stays until it is acknowledged."""
        found = self._peek()
        if found is None:
            return None
        segment, offset = found
        stored = segment.read(offset)
        if stored is None:  # the disk has changed what was whole before
            self._cut_bytes += segment.end - offset
            segment.end, segment.count = offset, sum(out.segment is segment for out in self._out)
            self._forget_if_done(segment)
            return self.next()
        self._cursor = (segment.number, stored.end)
        self._out.append(_Out(segment, stored.message, stored.end))
        return stored.message

    def acknowledge(self) -> None:
        """Forget the first of the messages that were read: the broker has it."""
        out = self._out.popleft()
        self._replayed += 1
        if out.segment in self._segments:
            with contextlib.suppress(OSError):  # a note that cannot be made repeats a message
                out.segment.acknowledge(out.end)
            self._forget_if_done(out.segment)

    def rewind(self) -> None:
        """Read again what was read and not acknowledged; what is gone meanwhile counts as lost."""
        lost = [out.message for out in self._out if out.segment not in self._segments]
        self._out.clear()
        self._dropped.add(lost)
        self._cursor = self._first()

    def close(self) -> None:
        """Let go of the folder; everything stays in it."""
        for segment in self._segments:
            segment.close()
        self._segments = []
        os.close(self._lock)

    def _open(self) -> None:
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            if path.stem.isdecimal():
                self._segments.append(Segment.open(path, int(path.stem)))

    def _first(self) -> tuple[int, int]:
        """Return where the first message lies that is not acknowledged."""
        if not self._segments:
            return self._next_number, START
        return self._segments[0].number, self._segments[0].acknowledged

    def _peek(self) -> tuple[Segment, int] | None:
        number, offset = self._cursor
        for segment in self._segments:
            start = offset if segment.number == number else segment.acknowledged
            if segment.number >= number and start < segment.end:
                return segment, start
        return None

    def _used(self) -> int:
        return sum(segment.end for segment in self._segments)

    def _add(self, framed: bytes) -> None:
        last = self._segments[-1] if self._segments else None
        if last is None or START < last.end > self._settings.segment_bytes - len(framed):
            self._sync_newest()  # nothing is added to it any more
            last = Segment.create(self._path(self._next_number), self._next_number)
            self._next_number += 1
            self._segments.append(last)
            if self._settings.sync:
                sync_folder(self._folder)
        before = last.end, last.count
        last.append(framed)
        if self._unsynced is None:
            self._unsynced = before

    def _sync_newest(self) -> None:
        """Make the newest segment safe, or take back what was appended to it since the last sync.

        A failure is kept for `sync` to raise, since the system tells of it once; what is appended
        until then goes back as well.
        """
        if self._unsynced is None:
            return
        end, count = self._unsynced
        self._unsynced = None
        segment = self._segments[-1]
        try:
            if self._settings.sync:
                segment.sync()
        except OSError as error:
            self._failure = error
        if self._failure is not None:
            self._cursor = min(self._cursor, (segment.number, end))
            with contextlib.suppress(OSError):
                segment.take_back(end, segment.count - count)
        self._forget_if_done(segment)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:016d}{_SUFFIX}"

    def _make_room(self, *, keep: int = 0) -> bool:
        """Give the oldest segment up, unless told to keep it or so many; True if there was one."""
        if self._settings.when_full == "refuse" or len(self._segments) <= keep:
            return False
        oldest = self._segments.pop(0)
        start = self._cursor[1] if self._cursor[0] == oldest.number else oldest.acknowledged
        if self._cursor[0] > oldest.number:
            start = oldest.end
        lost = [stored.message for stored in oldest.messages(start)]
        self._dropped.add(lost)
        if not self._segments:
            self._unsynced = None
        oldest.remove()
        _log.warning(
            "the spool is full: %d messages were given up, %d since the start",
            len(lost),
            self._dropped.messages.total(),
        )
        return True

    def _forget_if_done(self, segment: Segment) -> None:
        """Delete a segment of which everything is acknowledged."""
        if segment.count or segment.acknowledged < segment.end or self._is_unsynced(segment):
            return
        self._segments.remove(segment)
        segment.remove()

    def _is_unsynced(self, segment: Segment) -> bool:
        return self._unsynced is not None and segment is self._segments[-1]
