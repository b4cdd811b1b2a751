"""One program of the cluster as a process of its own: started, awaited, ended by its id."""

import contextlib
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.content.tree import ROOT
from tests.e2e.program import environment
from tests.streams.process import until

START_S: Final = 180.0
"""A start takes seconds; the first of a checkout compiles, which took over 90 s at a load of 8."""

STOP_S: Final = 30.0


class NotStartedError(Exception):
    """A program did not start: which, what it said last, and where its log is."""


class Process:
    """Runs `command`; what it says is appended to `log`. `ready` is a page that answers 200 then.

    It can be started again after `stop` or `kill`, and ends when we end, however that is.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        ready: str,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self.ready = ready
        self._command = list(command)
        self._variables = dict(variables or {})
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id of the one that runs."""
        assert self._running is not None, f"{self.name} was not started"
        return self._running.pid

    @property
    def is_running(self) -> bool:
        """True from a start to an end, by us or by itself."""
        return self._running is not None and self._running.poll() is None

    def start(self) -> None:
        """Start it; `await_ready` says when it is."""
        assert not self.is_running, f"{self.name} runs already"
        command = self._command
        if setpriv := shutil.which("setpriv"):
            command = [setpriv, "--pdeathsig", "KILL", "--", *command]
        with self.log.open("ab") as said:
            self._running = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=said, stderr=said, cwd=ROOT,
                env=environment(TZ="UTC", **self._variables), start_new_session=True,
            )  # fmt: skip

    def await_ready(self, timeout_s: float = START_S) -> None:
        """Wait until its page answers; raises NotStartedError."""
        until = time.monotonic() + timeout_s
        while time.monotonic() < until and self.is_running:
            with contextlib.suppress(OSError), urllib.request.urlopen(self.ready, timeout=5):
                return
            time.sleep(0.05)
        state = "is not ready" if self.is_running else "has ended"
        raise NotStartedError(f"{self.name} {state}; {self.log} ends with: {self.last_words()}")

    def order(self, line: str) -> None:
        """Write a line to its standard input, and wait until it repeats it or ends.

        Raises OSError if it has ended before.
        """
        running = self._running
        assert running is not None, f"{self.name} was not started"
        assert running.stdin is not None
        seen, wanted = self.log.stat().st_size, f"{line}\n".encode()
        running.stdin.write(wanted)
        running.stdin.flush()
        until(lambda: wanted in self.log.read_bytes()[seen:] or running.poll() is not None)

    def stop(self) -> None:
        """End it in order, by force if that takes too long."""
        if self._running is None:
            return
        if self._running.poll() is None:
            self._running.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._running.wait(STOP_S)
        self.kill()

    def kill(self) -> None:
        """End it as the kernel would (SIGKILL)."""
        if self._running is None:
            return
        self._running.kill()
        self._running.wait()
        if self._running.stdin is not None:
            with contextlib.suppress(OSError):
                self._running.stdin.close()
        self._running = None

    def resident_bytes(self) -> int:
        """Return the memory that it holds now."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        (size,) = (line.split()[1] for line in lines if line.startswith("VmRSS"))
        return int(size) * 1024

    def last_words(self) -> str:
        """Return the end of what it has said."""
        return " | ".join(self.log.read_text(errors="replace").splitlines()[-5:])[-800:]
