"""A program with an HTTP port as a child process: started, waited for, killed, ended with us."""

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


class HttpService:
    """Runs a command, whose URL `ready` answers once it serves; what it says is appended to `log`.

    It can be started again after `kill`.
    """

    def __init__(self, command: Sequence[str], log: Path, *, ready: str) -> None:
        self._command, self._log, self._ready = list(command), log, ready
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it serves; raises AssertionError."""
        assert self._process is None, f"{self._command[0]} runs already"
        words = self._command
        if setpriv := shutil.which("setpriv"):
            words = [setpriv, "--pdeathsig", "KILL", *words]  # even if the tests are killed
        with self._log.open("ab") as file:
            self._process = subprocess.Popen(words, stdout=file, stderr=file)
        self._await(self._process)

    def kill(self) -> None:
        """End it as the kernel would (SIGKILL), if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _await(self, process: "subprocess.Popen[bytes]") -> None:
        until_s = time.monotonic() + START_S
        while time.monotonic() < until_s:
            assert process.poll() is None, f"it ended: {self._log.read_text()[-500:]}"
            try:
                with urllib.request.urlopen(self._ready, timeout=5):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise AssertionError(f"it is not ready: {self._log.read_text()[-500:]}")


@contextmanager
def http_service(command: Sequence[str], log: Path, *, ready: str) -> Iterator[HttpService]:
    """Run a command until the end of a `with` block, from when its URL `ready` answers."""
    service = HttpService(command, log, ready=ready)
    try:
        service.start()
        yield service
    finally:
        service.kill()
