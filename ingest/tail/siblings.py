"""The rotated files of a log, oldest first, and those that must still be read from a place on."""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from ingest.tail.identity import FileIdentity, identity_of
from ingest.tail.opened import head_of

_ROTATED: Final = re.compile(r"[.-](\d[\dT:_.-]*?)(\.(?:gz|zst))?")
"""What rotation puts behind a name: logrotate's .1 and -20261129, kubelet's .20261129-180021,
Python's .2026-11-29_17, each with .gz or .zst once it is compressed."""

_NUMBER: Final = re.compile(r"\d{1,4}")
"""A number counts rotations, so the highest is the oldest; anything longer is a time."""


class FileMark(msgspec.Struct, frozen=True):
    """A place in a file: `offset` in unpacked bytes; `modified_ns` is when it was last written."""

    identity: FileIdentity
    offset: int
    modified_ns: int


def mark_of_nothing(since_ns: int, salt: bytes) -> FileMark:
    """Return the mark of a log that was not there yet: all files are read that come since."""
    return FileMark(identity_of(0, 0, b"", salt), 0, since_ns)


class Candidate(NamedTuple):
    """A file of the log that is there now, with where reading starts in it."""

    path: Path
    offset: int


class Since(NamedTuple):
    """The files to read from a mark on, oldest first. `found` tells whether its own is there."""

    files: tuple[Candidate, ...]
    found: bool


def is_rotated(path: Path, live: Iterable[Path]) -> bool:
    """Tell whether a file is by its name a rotated one of a log in `live`."""
    return any(_tag(path, one) is not None for one in live)


def rotated(live: Path) -> list[Path]:
    """Return the rotated files of a log, oldest first; a compressed one only without its plain."""
    tags = {
        path: tag
        for path in _folder(live.parent)
        if (tag := _tag(path, live)) is not None and path.is_file()
    }
    plain = {tag[1] for tag in tags.values() if not tag[0]}
    kept = [path for path, tag in tags.items() if not tag[0] or tag[1] not in plain]
    return sorted(kept, key=lambda path: _age(tags[path][1]))


def files_since(live: Path, mark: FileMark, *, salt: bytes) -> Since:
    """Return what must be read from a mark on: its file from the offset, then all younger ones.

    Where its file is gone, those count as younger that were written to after it. So do copies of a
    file that was empty at the mark: there was nothing to know them by.
    """
    files = [*rotated(live), *([live] if live.is_file() else [])]
    at = _position(files, mark, salt)
    if at is not None:
        younger = (Candidate(path, 0) for path in files[at + 1 :])
        copies = copies_since(files[:at], mark)
        return Since((*copies, Candidate(files[at], mark.offset), *younger), found=True)
    younger_files = [path for path in files if _modified_ns(path) >= mark.modified_ns]
    return Since(tuple(Candidate(path, 0) for path in younger_files), found=False)


def copies_since(rotated_files: list[Path], mark: FileMark) -> list[Candidate]:
    """Return what was copied from a file that was empty at a mark, before it was truncated."""
    if mark.identity.head_bytes or mark.offset:
        return []
    newer = (path for path in rotated_files if _modified_ns(path) > mark.modified_ns)
    return [Candidate(path, 0) for path in newer]


def _position(files: list[Path], mark: FileMark, salt: bytes) -> int | None:
    """Find the file of a mark: by its inode, or as a copy, or as a compressed copy."""
    copy = None
    for at, path in enumerate(files):
        try:
            status = path.stat()
        except OSError:
            continue
        head = head_of(path)
        if not mark.identity.has_head(head, salt):
            continue
        if mark.identity.is_same_inode(status.st_dev, status.st_ino):
            if status.st_size >= mark.offset:
                return at
        elif mark.identity.head_bytes:
            copy = at
    return copy


def _tag(path: Path, live: Path) -> tuple[bool, str] | None:
    """Return what rotation added to a name (packed, tag), None if it is not of this log."""
    if path.parent != live.parent or not path.name.startswith(live.name):
        return None
    found = _ROTATED.fullmatch(path.name[len(live.name) :])
    return None if found is None else (found[2] is not None, found[1])


def _age(tag: str) -> tuple[int, int, str]:
    if _NUMBER.fullmatch(tag):
        return 1, -int(tag), ""
    return 0, 0, tag


def _folder(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in os.listdir(folder)]
    except OSError:
        return []


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
