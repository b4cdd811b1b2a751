"""Secrets on disk, one on each line: read when they are needed, never printed.

Whoever reads them for every use has a secret that a mount replaces in use at once.
"""

import os
import stat
from pathlib import Path
from typing import Final

from detector.errors import SettingsError

MAX_BYTES: Final = 64 * 1024
"""A larger file holds no secrets."""


class Hidden(str):
    """Text that shows as `<secret>` where structures are printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the word instead of the text."""
        return "<secret>"


def read_lines(path: str, *, where: str) -> list[Hidden]:
    """Return the lines of a file that are neither empty nor begin with #.

    `where` names the setting: the path is not repeated, as it may be the secret itself, written in
    the wrong place. A file that every user may read is refused; one that its group may read is
    not, as Kubernetes mounts secrets so. Raises SettingsError, also for a file without lines.
    """
    try:
        mode = os.stat(path).st_mode
        if mode & stat.S_IRWXO:
            raise SettingsError(
                f"others may use the file (mode {stat.S_IMODE(mode):04o})",
                where=where,
                hint="chmod o= the file",
            )
        with Path(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        text = content.decode() if len(content) <= MAX_BYTES else ""
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise SettingsError(
            f"the secret cannot be read: {reason.lower()}",
            where=where,
            hint="name a file that this user may read",
        ) from None
    lines = [Hidden(line.strip()) for line in text.splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise SettingsError(
            "the file holds no secret", where=where, hint="write it on a line of the file"
        )
    return found
