"""A worker as a process of its own: started, awaited, measured by /proc, stopped."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

from tests.services.ports import free_port

READY_SECONDS: Final = 120.0
"""Compiling the kernels anew takes a minute on a busy machine."""

STOP_SECONDS: Final = 30.0

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Usage(NamedTuple):
    """What a process has used so far, and what it holds now."""

    cpu_seconds: float
    waited_seconds: float
    """Seconds its threads were ready to run and no core was free: what a busy machine costs."""
    resident_bytes: int


class WorkerProcess:
    """One `bleedwatch run worker`; its output goes to `log`."""

    def __init__(self, settings: Mapping[str, str], *, log: Path, core: int | None = None) -> None:
        self._log = log
        self._port = free_port()
        names = {**settings, "metrics.port": str(self._port)}
        command = [str(Path(sys.executable).with_name("bleedwatch")), "run", "worker"]
        for name, value in names.items():
            command += ["--set", f"{name}={value}"]
        if core is not None:
            command = ["taskset", "--cpu-list", str(core), *command]
        with log.open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """True until it has ended."""
        return self._process.poll() is None

    def last_words(self) -> str:
        """Return the last lines of its log."""
        return " | ".join(self._log.read_text(errors="replace").splitlines()[-5:])

    def await_ready(self) -> None:
        """Wait until the worker says that it is ready; raises RuntimeError with its last words."""
        deadline = time.monotonic() + READY_SECONDS
        reasons: object = ["it did not answer"]
        while time.monotonic() < deadline and self._process.poll() is None:
            answer = self._get("/readyz")
            if answer is not None:
                document = json.loads(answer)
                if document["ok"]:
                    return
                reasons = document["reasons"]
            time.sleep(0.1)
        raise RuntimeError(f"the worker is not ready: {reasons}; {self.last_words()}")

    def usage(self) -> Usage:
        """Return what the process has used."""
        process = Path(f"/proc/{self.pid}")
        fields = (process / "stat").read_text().rpartition(")")[2].split()
        threads = []
        for one in process.glob("task/*"):
            # a thread may have just ended
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                threads.append((one / "schedstat").read_text().split())
        return Usage(
            cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS,
            waited_seconds=sum(int(waited) for _, waited, _ in threads) / 1e9,
            resident_bytes=int((process / "statm").read_text().split()[1]) * _PAGE,
        )

    def metrics(
        self, names: Collection[str], labels: Mapping[str, str] | None = None
    ) -> dict[str, float]:
        """Return metrics of the worker, each summed over its series that have these labels."""
        wanted = (labels or {}).items()
        text = self._get("/metrics")
        if text is None:
            raise RuntimeError(f"the worker does not answer; its log is {self._log}")
        sums = dict.fromkeys(names, 0.0)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name in sums and wanted <= sample.labels.items():
                    sums[sample.name] += sample.value
        return sums

    def stop(self) -> int:
        """End the worker in order, by force if that takes too long; return its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _get(self, path: str) -> str | None:
        """Return the body, whatever the status; None while nothing listens."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=5) as body:
                return str(body.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return None


@contextlib.contextmanager
def workers(
    count: int, settings: Mapping[str, str], *, folder: Path, is_pinned: bool = False
) -> Iterator[list[WorkerProcess]]:
    """Run so many workers for the time of a `with` block, all of them ready at its beginning.

    `is_pinned` keeps each on a core of its own, counted from 0.
    """
    running: list[WorkerProcess] = []
    try:
        for number in range(count):
            log = folder / f"worker-{number}.log"
            core = number if is_pinned else None
            running.append(WorkerProcess(settings, log=log, core=core))
        for worker in running:
            worker.await_ready()
        yield running
    finally:
        for worker in running:
            worker.stop()
