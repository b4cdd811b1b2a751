"""Programs of Debian packages that tests start: found, or installed as root, or named in an error.

A machine without a program, where we may not install it, fails the tests that need it with what to
install: they are never skipped.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

INSTALL_TIMEOUT_S: Final = 240
"""The time-out of a test is 300 s."""


def program(name: str, package: str, *, folders: tuple[str, ...] = ()) -> str:
    """Return the path of a program; `folders` are looked in beside PATH, newest name first.

    Raises AssertionError if it is not there and cannot be installed.
    """
    found = _find(name, folders)
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        _install(package)
        found = _find(name, folders)
    assert found, f"{name} is not there: install it (Debian, Ubuntu: apt-get install {package})"
    return found


def _find(name: str, folders: tuple[str, ...]) -> str | None:
    below = [
        str(path)
        for pattern in folders
        for path in sorted(Path("/").glob(pattern.lstrip("/")), reverse=True)
    ]
    return shutil.which(name, path=os.pathsep.join([*below, os.environ.get("PATH", "")]))


def _install(package: str) -> None:
    command = ["apt-get", "install", "--yes", "--no-install-recommends", package]
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    with _alone():
        for words in (["apt-get", "update"], command):
            done = subprocess.run(
                words, env=quiet, capture_output=True, timeout=INSTALL_TIMEOUT_S, check=False
            )
    assert done.returncode == 0, (
        f"{package} could not be installed: {done.stderr.decode(errors='replace')[-500:]}"
    )


@contextmanager
def _alone() -> Iterator[None]:
    """Let one test process at a time install: the package manager takes no second one."""
    with Path(tempfile.gettempdir(), "bleedwatch-packages.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
