"""The rotated files of a log, oldest first, and those that must still be read from a place on."""

import os
import re
from collections.abc import Iterable
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ingest.tail.identity import FREED, FileIdentity, identity_of
from ingest.tail.opened import head_of

_ROTATED: Final = re.compile(r"[.-](\d[\dT:_.-]*?)(\.(?:gz|zst))?")
"""What rotation puts behind a name: logrotate's .1 and -20261129, kubelet's .20261129-180021,
Python's .2026-11-29_17, each with .gz or .zst once it is compressed."""

_NUMBER: Final = re.compile(r"\d{1,4}")
"""A number counts rotations, so the highest is the oldest; anything longer is a time."""

TRIES: Final = 100
"""A folder is looked at again when files were renamed meanwhile, which takes microseconds."""


class FileMark(msgspec.Struct, frozen=True):
    """A place in a file: `offset` in unpacked bytes; `modified_ns` is when it was last written."""

    identity: FileIdentity
    offset: int
    modified_ns: int

    @property
    def is_freed(self) -> bool:
        """Tell whether the head of the file was freed: one that is short is marked at 0 only."""
        return self.offset > 0 and not self.identity.head_bytes


def mark_of_nothing(since_ns: int, salt: bytes) -> FileMark:
    """Return the mark of a log that was not there yet: all files are read that come since."""
    return FileMark(identity_of(0, 0, b"", salt), 0, since_ns)


class Seen(NamedTuple):
    """A file of a log as the folder had it at one moment."""

    path: Path
    device: int
    inode: int
    size: int
    modified_ns: int

    @property
    def name(self) -> tuple[Path, int, int]:
        """What must not change while one looks."""
        return self.path, self.device, self.inode


class Candidate(NamedTuple):
    """A file of the log, with where reading starts in it."""

    file: Seen
    offset: int


class Since(NamedTuple):
    """The files to read from a mark on, oldest first. `found` tells whether its own is there."""

    files: tuple[Candidate, ...]
    found: bool


def is_rotated(path: Path, live: Iterable[Path]) -> bool:
    """Tell whether a file is by its name a rotated one of a log in `live`."""
    return any(_tag(path, one) is not None for one in live)


def seen(path: Path) -> Seen | None:
    """Look at one file; None if there is no such regular file."""
    try:
        status = path.stat()
    except OSError:
        return None
    if not os.path.isfile(path):
        return None
    return Seen(path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def rotated(live: Path) -> list[Seen]:
    """Return the rotated files of a log, oldest first; a compressed one only without its plain.

    Those of a symbolic link lie beside it or beside what it leads to, which is not one of them.
    """
    names = _names(live)
    tags = {
        file: tag
        for name in names
        for path in _folder(name.parent)
        if (tag := _tag(path, name)) is not None
        and path not in names
        and (file := seen(path)) is not None
    }
    plain = {tag[1] for tag in tags.values() if not tag[0]}
    kept = [file for file, tag in tags.items() if not tag[0] or tag[1] not in plain]
    return sorted(kept, key=lambda file: _age(tags[file][1]))


def all_files(live: Path) -> list[Seen]:
    """Return the rotated files of a log, oldest first, and behind them the one at its path.

    Where files are renamed meanwhile, one that is there may be missed: see `are_as_seen`.
    """
    newest = seen(live)
    return [*rotated(live), *([] if newest is None else [newest])]


def are_as_seen(live: Path, files: Iterable[Seen]) -> bool:
    """Tell whether a log has the files still that it had, by the same names and no others."""
    return [file.name for file in all_files(live)] == [file.name for file in files]


def copies_since(older: Iterable[Seen], mark: FileMark) -> list[Candidate]:
    """Return what was copied from a file that was empty at a mark, before it was truncated."""
    if mark.identity.head_bytes or mark.offset:
        return []
    return [Candidate(file, 0) for file in older if file.modified_ns > mark.modified_ns]


def files_since(
    files: list[Seen], mark: FileMark, *, live: Path, salt: bytes, may_be_freed: bool = False
) -> Since:
    """Return what must be read of all files from a mark on: its own from the offset, then younger.

    Where its file is gone, those count as younger that were written to after it, and the one at
    `live` whatever its time, as clocks go back. So do copies of a file that was empty at the mark:
    there was nothing to know them by. With `may_be_freed` the file's head may be so by now.
    """
    at = _position(files, mark, salt, may_be_freed=may_be_freed)
    if at is None:
        since_ns = mark.modified_ns
        younger = (one for one in files if one.modified_ns >= since_ns or one.path == live)
        return Since(tuple(Candidate(file, 0) for file in younger), found=False)
    behind = (Candidate(file, 0) for file in files[at + 1 :])
    copies = copies_since(files[:at], mark)
    return Since((*copies, Candidate(files[at], mark.offset), *behind), found=True)


def _position(files: list[Seen], mark: FileMark, salt: bytes, *, may_be_freed: bool) -> int | None:
    """Find the file of a mark: by its inode, or as a copy, or as a compressed copy."""
    known = [
        (_known_by(file, mark, salt, may_be_freed=may_be_freed), at)
        for at, file in enumerate(files)
    ]
    by, at = max(known, default=(_KnownBy.NOTHING, 0))
    return at if by else None


class _KnownBy(IntEnum):
    """What tells that a file is the one of a mark; the higher, the surer."""

    NOTHING = 0
    FREED_COPY = 1
    FREED_INODE = 2
    HEAD = 3
    INODE = 4


def _known_by(file: Seen, mark: FileMark, salt: bytes, *, may_be_freed: bool) -> _KnownBy:
    head = head_of(file.path)
    is_own = mark.identity.is_same_inode(file.device, file.inode)
    is_long = head.is_packed or file.size >= mark.offset
    if not mark.is_freed and mark.identity.has_head(head.content, salt):
        if is_own:
            return _KnownBy.INODE if is_long else _KnownBy.NOTHING
        return _KnownBy.HEAD if mark.identity.head_bytes else _KnownBy.NOTHING
    if is_long and mark.offset and head.content.startswith(FREED):
        if is_own and (may_be_freed or mark.is_freed):
            return _KnownBy.FREED_INODE
        return _KnownBy.FREED_COPY if mark.is_freed else _KnownBy.NOTHING
    return _KnownBy.NOTHING


def _tag(path: Path, live: Path) -> tuple[bool, str] | None:
    """Return what rotation added to a name (packed, tag), None if it is not of this log."""
    if path.parent != live.parent or not path.name.startswith(live.name):
        return None
    found = _ROTATED.fullmatch(path.name[len(live.name) :])
    return None if found is None else (found[2] is not None, found[1])


def _names(live: Path) -> tuple[Path, ...]:
    """Return the path of a log; of a symbolic link also what it leads to, both without links."""
    if not live.is_symlink():
        return (live,)
    return Path(os.path.realpath(live.parent)) / live.name, Path(os.path.realpath(live))


def _age(tag: str) -> tuple[int, int, str]:
    if _NUMBER.fullmatch(tag):
        return 1, -int(tag), ""
    return 0, 0, tag


def _folder(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder)]
    except OSError:
        return []
