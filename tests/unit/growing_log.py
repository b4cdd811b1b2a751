"""A log as an engine writes it and others rotate it: by rename, by copytruncate, packed later."""

import gzip
import os
import shutil
from pathlib import Path

import zstandard

from ingest.coverage import Coverage
from ingest.tail.followed import FollowedLog
from ingest.tail.siblings import FileMark
from ingest.tail.splitter import Line

SALT = bytes(16)
WAIT_S = 1.0
MOST_KEPT = 1_000
"""Rotated files that stay: none is given up while a test runs."""


def wide(word: bytes) -> bytes:
    """Return a line that is long enough to know a file by that begins with it."""
    return word.ljust(150) + b"\n"


class GrowingLog:
    """Appends to a file, whatever it is called by now, until told to open it anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("ab", buffering=0)

    def write(self, content: bytes) -> None:
        """Append bytes, a whole line or not."""
        self._file.write(content)

    def rename(self) -> Path:
        """Rename as logrotate does: .1, what was .1 becomes .2; the writer keeps its file."""
        self._make_room()
        return self.path.rename(self._numbered(1))

    def reopen(self) -> None:
        """Write to a new file from now on."""
        self._file.close()
        self._file = self.path.open("ab", buffering=0)

    def rotate(self) -> Path:
        """Rename and reopen."""
        moved = self.rename()
        self.reopen()
        return moved

    def copy_truncate(self) -> Path:
        """Copy to .1 and truncate; the writer goes on in the same file."""
        self._make_room()
        shutil.copyfile(self.path, self._numbered(1))
        with self.path.open("r+b") as file:
            file.truncate(0)
        return self._numbered(1)

    def close(self) -> None:
        """Stop writing."""
        self._file.close()

    def _numbered(self, number: int, suffix: str = "") -> Path:
        return self.path.with_name(f"{self.path.name}.{number}{suffix}")

    def _make_room(self) -> None:
        for number in range(MOST_KEPT, 0, -1):
            for suffix in ("", ".gz", ".zst"):
                old = self._numbered(number, suffix)
                if old.exists():
                    old.rename(self._numbered(number + 1, suffix))


def pack(path: Path, suffix: str = ".gz") -> Path:
    """Compress a file as gzip and zstd do: another inode, the same time, the plain one goes."""
    status = path.stat()
    content = path.read_bytes()
    packed = path.with_name(path.name + suffix)
    packed.write_bytes(gzip.compress(content) if suffix == ".gz" else zstandard.compress(content))
    os.utime(packed, ns=(status.st_atime_ns, status.st_mtime_ns))
    path.unlink()
    return packed


class Follower:
    """Follows a log with a clock of its own; can stop and begin again at any line it gave."""

    def __init__(self, path: Path, *, owned: bool = False) -> None:
        self.coverage = Coverage()
        self.lines: dict[int, bytes] = {}
        """All lines by position; a line that is read again must be the same."""
        self._path = path
        self._owned = owned
        self._now_s = 0.0
        self._place: tuple[FileMark | None, int] = (None, 0)
        self.log = self._opened(None, 0)

    def read(self, *, turns: int = 12) -> list[bytes]:
        """Let time pass and return the lines that come."""
        come: list[Line] = []
        for _ in range(turns):
            self._now_s += WAIT_S / 4
            come += self.log.poll(self._now_s)
        for at, content in come:
            assert self.lines.setdefault(at, content) == content
        return [content.rstrip(b" ") for _, content in come]

    def place(self) -> tuple[FileMark | None, int]:
        """Return where a later start would go on: as far as the log can be known again."""
        mark = self.log.place(self.log.next_at)
        if mark is not None:
            self._place = mark, self.log.next_at
        return self._place

    def restart(self, at: tuple[FileMark | None, int] | None = None) -> None:
        """Begin again at a place, or where the log is now."""
        mark, position = self.place() if at is None else at
        self.log.close()
        self.log = self._opened(mark, position)

    def _opened(self, mark: FileMark | None, position: int) -> FollowedLog:
        return FollowedLog(
            self._path,
            salt=SALT,
            coverage=self.coverage,
            rotate_wait_s=WAIT_S,
            mark=mark,
            position=position,
            owned=self._owned,
        )
