"""A worker as users start it, on a cluster of a test: waited for, signalled, ended."""

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Self

from tests.e2e.program import environment
from tests.streams.health import metric, status
from tests.streams.process import until
from tests.streams.real import Cluster

START_S = 240.0
"""The first worker may have to compile the kernels."""

END_S = 90.0


class Program:
    """`bleedwatch run worker`, with `more` flags; killed when a `with` block ends."""

    def __init__(self, cluster: Cluster, log: Path, *more: str) -> None:
        self._log = log
        command = [*cluster.command, *more]
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, stderr=file, env=environment())

    def __enter__(self) -> Self:
        until(lambda: bool(self._port()) or self.process.poll() is not None, START_S)
        assert self._port(), self._log.read_text()[-3000:]
        return self

    def __exit__(self, *_error: object) -> None:
        self.process.kill()
        self.process.wait()

    def until_assigned(self) -> None:
        """Wait until it has partitions and has rebuilt their windows."""
        until(lambda: metric(self._port(), "bleedwatch_assigned_partitions") > 0)
        until(lambda: status(self._port(), "/readyz") == 200)

    def tell(self, number: signal.Signals) -> None:
        """Send a signal."""
        os.kill(self.process.pid, number)

    def end(self, number: signal.Signals) -> int:
        """Send a signal that ends it; return its exit code."""
        self.tell(number)
        return self.process.wait(END_S)

    def _port(self) -> int:
        found = re.search(r"health on port (\d+)", self._log.read_text())
        return int(found[1]) if found else 0
