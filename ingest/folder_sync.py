"""Makes the names in a folder durable: a file that is on disk is found after a crash only then."""

import contextlib
import os
from pathlib import Path


def sync_folder(folder: Path) -> None:
    """Return once the disk knows the names in it. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some network file systems cannot
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
