"""A worker as a process of its own: started, stopped, killed, frozen, and what it tells."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from tests.content.tree import ROOT

WAIT_S = 180.0
"""Far longer than anything takes here; only a failing test waits for so long."""

Told = dict[str, Any]


class WorkerProcess:
    """Runs `python -m MODULE ARGUMENTS`; what its stdout says is kept in `told`."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        self.log = log
        self.told: list[Told] = []
        self._news = threading.Condition()
        command = [sys.executable, "-m", *arguments]
        if setpriv := shutil.which("setpriv"):
            command = [setpriv, "--pdeathsig", "KILL", *command]  # even if the tests are killed
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=ROOT,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(self.process.stdout,), daemon=True)
        self._reader.start()

    def wait_for(self, wanted: Callable[[list[Told]], bool], timeout_s: float = WAIT_S) -> None:
        """Wait until what was told satisfies a condition."""
        with self._news:
            if not self._news.wait_for(lambda: wanted(self.told), timeout_s):
                tail = self.log.read_text(errors="replace")[-3000:]
                raise AssertionError(f"not in {timeout_s:g} s; told {self.told[-8:]}\n{tail}")

    def wait_event(self, event: str, count: int = 1, timeout_s: float = WAIT_S) -> None:
        """Wait until an event was told so often."""
        self.wait_for(lambda told: sum(t["event"] == event for t in told) >= count, timeout_s)

    def tells(self, event: str, timeout_s: float, *, before: int = 0) -> bool:
        """Return whether an event is told in time; what was told before is left out."""
        with self._news:
            return self._news.wait_for(
                lambda: any(told["event"] == event for told in self.told[before:]), timeout_s
            )

    def partitions(self) -> set[int]:
        """Return the partitions that it holds."""
        held: set[int] = set()
        for told in list(self.told):
            if told["event"] == "assign":
                held.add(told["partition"])
            elif told["event"] == "revoke":
                held.discard(told["partition"])
        return held

    def stop(self) -> int:
        """Ask it to end (SIGTERM) and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self, timeout_s: float = WAIT_S) -> int:
        """Wait for its end and return its exit code."""
        code = self.process.wait(timeout_s)
        self._reader.join(WAIT_S)
        return code

    def kill(self) -> None:
        """End it as the kernel would (SIGKILL)."""
        self.process.kill()
        self.ended()

    def freeze(self) -> None:
        """Stop its clock."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.process.pid, signal.SIGCONT)

    def _read(self, lines: IO[bytes]) -> None:
        for line in lines:
            with self._news:
                self.told.append(_told(line))
                self._news.notify_all()


def _told(line: bytes) -> Told:
    """Return an event; what a library has printed is one too, so that a failing test shows it."""
    try:
        told: Told = json.loads(line)
    except ValueError:
        return {"event": "printed", "text": line.decode(errors="replace")}
    return told


@contextlib.contextmanager
def worker(arguments: Sequence[str], log: Path) -> Iterator[WorkerProcess]:
    """Run a worker for the time of a `with` block; kill it if it still runs then."""
    one = WorkerProcess(arguments, log)
    try:
        yield one
    finally:
        if one.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                one.thaw()
            one.kill()
        if one.process.stdout is not None:
            one.process.stdout.close()


def until(condition: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not in {timeout_s:g} s"
        time.sleep(0.05)
