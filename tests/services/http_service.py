"""A program with an HTTP port as a child process: started, waited for, ended with the tests."""

import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

START_S: Final = 60.0
"""A busy machine takes seconds; one that takes this long has failed."""


@contextmanager
def http_service(command: Sequence[str], log: Path, *, ready: str) -> Iterator[None]:
    """Run a command until the end of a `with` block, from when its URL `ready` answers."""
    words = list(command)
    if setpriv := shutil.which("setpriv"):
        words = [setpriv, "--pdeathsig", "KILL", *words]  # even if the tests are killed
    with log.open("wb") as file, subprocess.Popen(words, stdout=file, stderr=file) as process:
        try:
            _wait_until_ready(ready, process, log)
            yield
        finally:
            process.kill()


def _wait_until_ready(ready: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s:
        assert process.poll() is None, f"it ended: {log.read_text()[-500:]}"
        try:
            with urllib.request.urlopen(ready, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise AssertionError(f"it is not ready: {log.read_text()[-500:]}")
