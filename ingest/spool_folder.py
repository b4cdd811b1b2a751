"""The folder of a spool: locked for one process, and the errors when it is unusable."""

import fcntl
import os
from pathlib import Path
from typing import Final

from detector.errors import BrokerError, InputError

_LOCK: Final = "lock"


def locked(folder: Path) -> int:
    """Make the folder and lock it; return what holds the lock. Raises InputError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise cannot_use(folder, error) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise InputError(
            "another process has this spool",
            where=str(folder),
            hint="give each sidecar a spool.folder of its own",
        ) from None
    return lock


def cannot_use(folder: Path, error: OSError) -> InputError:
    """Return the error of a spool that cannot be opened."""
    reason = (error.strerror or type(error).__name__).lower()
    return InputError(
        f"the spool cannot be read or written: {reason}",
        where=str(folder),
        hint="set spool.folder to a folder that this user may write to",
    )


def no_room(folder: Path, error: OSError) -> BrokerError:
    """Return the error of a message that the disk did not take."""
    reason = (error.strerror or type(error).__name__).lower()
    return BrokerError(
        f"the spool cannot be written: {reason}",
        where=str(folder),
        hint="make room on its disk, or bring the broker back",
    )
