"""On what kind of volume a file lies: request logs hold prompts and belong in memory."""

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

MOUNTS: Final = Path("/proc/self/mountinfo")

IN_MEMORY: Final = frozenset({"tmpfs", "ramfs"})
"""File systems of Linux that keep nothing on a disk (tmpfs may swap, if the node has swap)."""

_ESCAPED = re.compile(r"\\([0-7]{3})")


class Volume(NamedTuple):
    """A mounted file system: its type, and where it is mounted."""

    kind: str
    mounted_at: str

    @property
    def is_memory(self) -> bool:
        """True if what lies there is in memory only."""
        return self.kind in IN_MEMORY


def volume_of(path: Path, mounts: str | None = None) -> Volume | None:
    """Return the volume that a path lies on, links followed; None where the system tells none.

    `mounts` is the text of /proc/self/mountinfo, read if it is not given. Of file systems that are
    mounted over each other the last one counts.
    """
    if mounts is None:
        try:
            mounts = MOUNTS.read_text(errors="surrogateescape")
        except OSError:
            return None
    real = os.path.realpath(path)
    found: Volume | None = None
    for line in mounts.splitlines():
        volume = _volume(line)
        if volume is None or not _is_below(real, volume.mounted_at):
            continue
        if found is None or len(volume.mounted_at) >= len(found.mounted_at):
            found = volume
    return found


def _volume(line: str) -> Volume | None:
    """Read a line: id parent major:minor root MOUNTED options [fields] - TYPE source options."""
    before, _, after = line.partition(" - ")
    fields, kind = before.split(" "), after.split(" ")[0]
    if len(fields) < 5 or not kind:
        return None
    return Volume(kind, _ESCAPED.sub(lambda match: chr(int(match[1], 8)), fields[4]))


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
