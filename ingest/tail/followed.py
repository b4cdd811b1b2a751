"""One log followed through its rotations, however they are done.

By rename, as logrotate, kubelet and Python's handlers do: the old file is read to its end, also
what is still written to it, then the new one. By copytruncate: what was not read yet is read from
the copy. Several rotations at once, or while nobody followed: all files in between, in order.
"""

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Final

from ingest.sources.base import CoverageSink
from ingest.tail.hygiene import delete_read, free_read
from ingest.tail.identity import identity_of
from ingest.tail.opened import Opened, PlainFile, head_of, open_log
from ingest.tail.siblings import (
    TRIES,
    Candidate,
    FileMark,
    Seen,
    all_files,
    are_as_seen,
    copies_since,
    files_since,
    mark_of_nothing,
    seen,
)
from ingest.tail.splitter import Line, Splitter

CLOCK_NS: Final = 10_000_000
"""A file's time may be that of the last tick of the kernel's clock, up to 10 ms ago."""

REMEMBERED: Final = 100
"""Files that were read and released are known again: as many as a folder may keep."""

PACKED_NS: Final = 1_000_000_000
"""A packed file has the time of the plain one, of which some programs keep whole seconds only."""

POLL_BYTES: Final = 256 * 1024
"""Most bytes of one log taken at once: logs take turns, and checkpoints come while much is left."""


@dataclass(slots=True)
class _Part:
    """One file of the log: where in the log it begins to be read, and since when it is silent."""

    file: Opened
    start: int = 0
    start_offset: int = 0
    read_s: float = 0.0
    read_ns: int = 0
    """When the file was last written to before it was read, or opened."""
    is_truncated: bool = False
    """True if what was read of the file is not in it any more."""
    empty: FileMark | None = None
    """The file as it was opened, if it was empty then and was not looked at since."""

    @property
    def end(self) -> int:
        """Where in the log it ends, as far as it is read."""
        return self.start + self.file.offset - self.start_offset

    def mark(self, offset: int) -> FileMark:
        if self.empty is not None:  # a copy made since is younger than the file was then
            return self.empty
        # a copy of what was read is older than a truncation, and than what is written behind that
        is_as_read = not (self.is_truncated or self.file.is_truncated())
        modified_ns = self.file.modified_ns() if is_as_read else self.read_ns
        return FileMark(self.file.identity(), offset, modified_ns)

    def read(self) -> bytes:
        """Return what comes next in the file."""
        modified_ns = self.file.modified_ns()
        block = self.file.read()
        if block:
            self.read_ns = modified_ns
        return block

    def holds(self, file: Seen, salt: bytes) -> bool:
        """Tell whether a file of the folder is this one, packed or not."""
        if self.is_truncated or self.file.is_truncated():
            return False
        identity = self.file.identity()
        return identity.is_same_inode(file.device, file.inode) or _is_packed(
            file, self.mark(self.file.offset), salt
        )


class FollowedLog:
    """The lines of one log file and of those that it was rotated to.

    `mark` and `position` say where an earlier follower stopped. What can be told to be lost is
    counted in `coverage`: `file_gone` (the file of the mark is nowhere), `truncated_unread` (a
    truncation without a copy), `late_write` (a file that grew after it was finished with),
    `file_unreadable`. With `owned` the log is this reader's alone: what is released is freed.
    """

    can_read_again = True

    def __init__(
        self,
        path: Path,
        *,
        salt: bytes,
        coverage: CoverageSink,
        rotate_wait_s: float,
        mark: FileMark | None = None,
        position: int = 0,
        from_end: bool = False,
        owned: bool = False,
    ) -> None:
        self.name = str(path)
        self._path = path
        self._salt = salt
        self._coverage = coverage
        self._wait_s = rotate_wait_s
        self._owned = owned
        self._splitter = Splitter(position, coverage=coverage)
        self._read: deque[_Part] = deque()  # finished with, not released yet
        self._now: _Part | None = None
        self._next: deque[_Part] = deque()
        self._released: deque[FileMark] = deque(maxlen=REMEMBERED)
        self._mark = mark
        self._has_begun = False
        self._is_unreadable = False
        if mark is not None:
            if not self._open_since(mark) and mark.offset:
                coverage.broken("file_gone")
        elif (live := seen(path)) is not None:
            self._open([Candidate(live, live.size if from_end else 0)])
        else:
            self._mark = mark_of_nothing(time.time_ns() - CLOCK_NS, salt)

    @property
    def next_at(self) -> int:
        """Position of the first line that was not returned yet."""
        return self._splitter.next_at

    @property
    def behind_bytes(self) -> int:
        """How much is there and not read, as it lies on disk."""
        parts = (self._now, *self._next)
        return sum(part.file.left_bytes() for part in parts if part is not None)

    @property
    def is_behind(self) -> bool:
        """True while something is there that was not read yet, or a file is to be read next."""
        return bool(self._next or self.behind_bytes)

    @property
    def is_there(self) -> bool:
        """True once the file is there."""
        return self._now is not None or bool(self._next)

    @property
    def is_over(self) -> bool:
        """False: the log may come again."""
        return False

    def poll(self, now_s: float) -> list[Line]:
        """Return lines that have come, of at most about POLL_BYTES; never waits."""
        lines: list[Line] = []
        budget = POLL_BYTES
        while budget > 0:
            part = self._current(now_s)
            if part is None:
                break
            if part.empty is not None and part.file.has_content():
                self._look_for_copies(part, part.empty)
                continue
            block = part.read()
            if block:
                part.read_s = now_s
                budget -= len(block)
                lines += self._splitter.feed(block)
            elif not self._at_end(part, now_s):
                break
        return lines

    def finish(self) -> list[Line]:
        """Return nothing: a line that is not complete is read again by the next start."""
        return []

    def place(self, position: int) -> FileMark | None:
        """Return the file of a position; None while that file has too little to be known by."""
        parts = [*self._read, *([self._now] if self._now is not None else [])]
        for part in reversed(parts):
            if part.start <= position:
                mark = part.mark(part.start_offset + position - part.start)
                if part.file.is_known():
                    return mark
                return None if mark.offset else _bare(mark, self._salt)
        return self._mark

    def release(self, position: int) -> None:
        """Let go of the files below a position; free what they hold if they are ours."""
        while self._read and self._read[0].end <= position:
            part = self._read.popleft()
            is_as_read = not (part.is_truncated or part.file.is_truncated())
            if isinstance(part.file, PlainFile) and is_as_read:
                if part.file.size > part.file.offset:
                    self._coverage.broken("late_write")
                elif self._owned:
                    delete_read(part.file.identity(), live=self._path)
            if not part.is_truncated:
                self._released.append(part.mark(part.file.offset))
            part.file.close()
        if self._owned and self._now is not None and not self._next:
            self._free(self._now, position)

    def close(self) -> None:
        """Let go of all files."""
        for part in (*self._read, self._now, *self._next):
            if part is not None:
                part.file.close()

    def _free(self, part: _Part, position: int) -> None:
        if not isinstance(part.file, PlainFile) or part.file.is_truncated():
            return
        if free_read(part.file, part.start_offset + position - part.start):
            self._done(part)
            part.is_truncated = True
            self._open_live()

    def _open_since(self, mark: FileMark) -> bool:
        """Open what must be read from a mark on; True if the mark's own file is there."""
        # an earlier follower may have freed the file behind its mark; we know what we freed
        may_be_freed = self._owned and mark is self._mark
        for _ in range(TRIES):
            files = all_files(self._path)
            since = files_since(
                files, mark, live=self._path, salt=self._salt, may_be_freed=may_be_freed
            )
            unread = [one for one in since.files if not self._has_read(one.file)]
            if self._open(unread, of=files):
                break
        return since.found

    def _has_read(self, file: Seen) -> bool:
        """Tell whether a file is read or being read by what it is now, packed or not."""
        parts = (one for one in (self._now, *self._read) if one is not None)
        return any(one.holds(file, self._salt) for one in parts) or any(
            _is_packed(file, one, self._salt) for one in self._released
        )

    def _open(self, files: Iterable[Candidate], *, of: list[Seen] | None = None) -> bool:
        """Open files to be read next; none, with False, if `of` are not the log's files any more.

        One that is emptied after it was seen leaves a copy, which is to be read before it.
        """
        opened: list[_Part] = []
        complete = self._open_each(files, opened) and (of is None or are_as_seen(self._path, of))
        if complete:
            self._next.extend(opened)
        else:
            for part in opened:
                part.file.close()
        return complete

    def _open_each(self, files: Iterable[Candidate], opened: list[_Part]) -> bool:
        """Add to `opened`; False at the first that has another name by now."""
        for file, offset in files:
            try:
                log = open_log(file.path, salt=self._salt, coverage=self._coverage, offset=offset)
            except FileNotFoundError:
                return False
            except OSError:
                if not self._is_unreadable:
                    self._coverage.broken("file_unreadable")
                self._is_unreadable = True
                continue
            self._is_unreadable = False
            part = _Part(log, start_offset=log.begins_at, read_ns=log.modified_ns())
            part.empty = None if log.has_content() else part.mark(0)
            opened.append(part)
            if not log.identity().is_same_inode(file.device, file.inode):
                return False
        return True

    def _current(self, now_s: float) -> _Part | None:
        """Return the file to read; the log's own once it is there."""
        if self._now is None:
            if not self._next:
                self._open_live()
            if self._next:
                self._has_begun = True
                self._now = self._next.popleft()
                self._now.start = self._splitter.position
                self._now.read_s = now_s
        return self._now

    def _at_end(self, part: _Part, now_s: float) -> bool:
        """Look what comes behind the end of a file; True if there is something to read on."""
        if part.file.is_truncated():
            self._truncated(part)
            return True
        if self._next:
            then = self._next[0].file
            begun = then.has_content() or then.is_truncated()
            silent = now_s - part.read_s >= self._wait_s and begun
            if not part.file.is_finished and not silent:
                return False
            self._done(part)
            return True
        if self._is_replaced(part):
            found = self._open_since(part.mark(part.file.offset))
            if self._next and not found and _is_deleted(part.file):
                self._coverage.broken("file_gone")  # as may be those that came between
        return bool(self._next)

    def _look_for_copies(self, part: _Part, empty: FileMark) -> None:
        """Read first what a file held that was copied and truncated before anybody looked."""
        part.empty = None
        later = [part, *self._next]
        self._next.clear()
        for _ in range(TRIES):
            files = all_files(self._path)
            older = takewhile(lambda one: not part.holds(one, self._salt), files)
            unread = [one for one in older if one.path != self._path and not self._has_read(one)]
            if self._open(copies_since(unread, empty), of=files):
                break
        if self._next:
            self._next.extend(later)
            self._now = None
        else:
            self._next.extend(later[1:])

    def _is_replaced(self, part: _Part) -> bool:
        """Tell whether the log's path is another file now."""
        live = seen(self._path)
        return live is not None and not part.file.identity().is_same_inode(live.device, live.inode)

    def _done(self, part: _Part) -> None:
        self._splitter.seam()
        self._read.append(part)
        self._now = None

    def _truncated(self, part: _Part) -> None:
        """Read on in the copy that was made before the truncation, if there is one."""
        self._done(part)
        part.is_truncated = True
        for later in self._next:
            later.file.close()
        self._next.clear()
        if not self._open_since(part.mark(part.file.offset)):
            self._coverage.broken("truncated_unread")

    def _open_live(self) -> None:
        """Open the file at the log's path; also what was rotated while the log was waited for."""
        live = seen(self._path)
        if live is None:
            return
        if self._mark is None or self._has_begun:
            self._open([Candidate(live, 0)])
        else:
            self._open_since(self._mark)


def _is_deleted(file: Opened) -> bool:
    return isinstance(file, PlainFile) and file.is_deleted


def _is_packed(file: Seen, mark: FileMark, salt: bytes) -> bool:
    """Tell whether a file is the mark's, compressed: of the same time, it begins with the same.

    False as well for one that was renamed meanwhile: it cannot be opened by that name either.
    """
    if abs(file.modified_ns - mark.modified_ns) >= PACKED_NS:
        return False
    head = head_of(file.path).content
    now = seen(file.path)
    return now is not None and now.name == file.name and mark.identity.begins(head, salt)


def _bare(mark: FileMark, salt: bytes) -> FileMark:
    """Return a mark that knows its file by the inode alone."""
    identity = identity_of(mark.identity.device, mark.identity.inode, b"", salt)
    return FileMark(identity, mark.offset, mark.modified_ns)
