"""Frees what is acknowledged of a log that is ours alone, so that prompts do not stay around.

A file that is still written to loses its blocks and keeps its size (a hole is punched), so nothing
that is written meanwhile is lost, however its writer opened it. A file system without holes gets
a truncation instead, in the moment in which everything is acknowledged; its writer must append, and
what it writes between our look at the size and the truncation, some microseconds, is lost.
Rotated files are deleted.
"""

import contextlib
import ctypes
import os
import stat
from pathlib import Path
from typing import Final

from ingest.tail.identity import FileIdentity
from ingest.tail.opened import PlainFile
from ingest.tail.siblings import rotated

_KEEP_SIZE_AND_PUNCH_HOLE: Final = 0x01 | 0x02
"""FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE of linux/falloc.h."""


def free_read(file: PlainFile, below: int) -> bool:
    """Free the bytes below an offset; True if the file was truncated and begins anew.

    Does nothing where the file may not be written to, and nothing to a link: whoever may write into
    the folder of a log must not have other files emptied by us. What was truncated since it was
    read is not to be given here: it holds something else below the offset.
    """
    if below <= 0 or not _is_itself(file):
        return False
    try:
        descriptor = os.open(f"/proc/self/fd/{file.descriptor}", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if punch_hole(descriptor, below):
            file.forget_head()
            return False
        return truncate_read(descriptor, below)
    finally:
        os.close(descriptor)


def _is_itself(file: PlainFile) -> bool:
    """Whether the file lies at its path, and only there."""
    try:
        status = file.path.lstat()
    except OSError:
        return False
    is_alone = stat.S_ISREG(status.st_mode) and status.st_nlink == 1
    return is_alone and file.identity().is_same_inode(status.st_dev, status.st_ino)


def punch_hole(descriptor: int, below: int) -> bool:
    """Free the blocks below an offset; False if system or file system cannot."""
    fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is None:
        return False
    offset, size = ctypes.c_int64(0), ctypes.c_int64(below)
    return int(fallocate(descriptor, _KEEP_SIZE_AND_PUNCH_HOLE, offset, size)) == 0


def truncate_read(descriptor: int, below: int) -> bool:
    """Truncate a file that ends where all is acknowledged; True if that was so."""
    if os.fstat(descriptor).st_size != below:
        return False
    os.ftruncate(descriptor, 0)
    return True


def delete_read(identity: FileIdentity, *, live: Path) -> None:
    """Delete a rotated file of a log, whatever it is called by now; none that a link leads to."""
    for file in rotated(live):
        is_beside = file.path.parent == live.parent
        if is_beside and identity.is_same_inode(file.device, file.inode):
            with contextlib.suppress(OSError):
                file.path.unlink()
