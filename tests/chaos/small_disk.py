"""A file system of a few megabytes that can be filled up: a tmpfs in a mount namespace of its own.

No privilege is needed where unprivileged user namespaces are allowed, which is the default of the
usual distributions. The files are reached through /proc while the namespace lives.
"""

import subprocess
from pathlib import Path
from typing import Self

SIZE_MB = 48
"""Room for the segments and indexes of a node with a handful of partitions."""


class SmallDisk:
    """Use it in a `with` block; what is on it is gone afterwards."""

    properties = {  # noqa: RUF012 - read only
        "log.index.size.max.bytes": "65536",
        "log.segment.bytes": "1048576",
        "metadata.log.segment.bytes": "8388608",
    }

    def __init__(self, folder: Path, *, size_mb: int = SIZE_MB) -> None:
        self._size_mb = size_mb
        self._mount = folder / "small-disk"
        self._mount.mkdir(exist_ok=True)

    def __enter__(self) -> Self:
        options = f"size={self._size_mb}m"
        mount = f'mount -t tmpfs -o {options} tmpfs "$0" && echo mounted && exec sleep infinity'
        self._holder = subprocess.Popen(
            [
                "unshare",
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                mount,
                str(self._mount),
            ],
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"mounted\n", (
            "user namespaces are not allowed here"
        )
        self.path = Path(f"/proc/{self._holder.pid}/root{self._mount}")
        return self

    def __exit__(self, *_error: object) -> None:
        self._holder.kill()
        self._holder.wait()
        if self._holder.stdout is not None:
            self._holder.stdout.close()

    def fill(self) -> None:
        """Leave no room at all."""
        with (self.path / "filler").open("wb", buffering=0) as file:
            try:
                while file.write(b"\0" * 65_536):
                    pass
            except OSError:
                return

    def free(self) -> None:
        """Give the room back."""
        (self.path / "filler").unlink()
