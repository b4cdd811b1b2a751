"""A real Alertmanager of the Debian package, on a free port, that routes to one webhook."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.services.packages import program

PACKAGE: Final = "prometheus-alertmanager"

START_S: Final = 60.0
"""A busy machine takes seconds; one that takes this long has failed."""

CONFIG: Final = """
route:
  receiver: hook
  group_by: [incident]
  group_wait: 10ms
  group_interval: 100ms
  repeat_interval: 1h
receivers:
  - name: hook
    webhook_configs:
      - url: {webhook}
        send_resolved: true
"""


@dataclass(frozen=True)
class Alertmanager:
    """One that runs."""

    url: str

    def alerts(self) -> list[dict[str, Any]]:
        """Return the active alerts as `amtool` shows them."""
        command = [program("amtool", PACKAGE), "alert", "query", "--output=json"]
        done = subprocess.run(
            [*command, f"--alertmanager.url={self.url}"],
            capture_output=True,
            timeout=START_S,
            check=True,
        )
        found: list[dict[str, Any]] = json.loads(done.stdout)
        return found


@contextmanager
def alertmanager(folder: Path, *, webhook: str) -> Iterator[Alertmanager]:
    """Give an Alertmanager that tells `webhook` of every incident at once."""
    config = folder / "alertmanager.yml"
    config.write_text(CONFIG.format(webhook=webhook))
    port = _free_port()
    log = (folder / "alertmanager.log").open("wb")
    command = [
        program("prometheus-alertmanager", PACKAGE),
        f"--config.file={config}",
        f"--storage.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    if setpriv := shutil.which("setpriv"):
        command = [setpriv, "--pdeathsig", "KILL", *command]  # even if the tests are killed
    with log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            made = Alertmanager(f"http://127.0.0.1:{port}")
            _wait_until_ready(made.url, process, folder / "alertmanager.log")
            yield made
        finally:
            process.kill()


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s:
        assert process.poll() is None, f"it ended: {log.read_text()[-500:]}"
        try:
            with urllib.request.urlopen(f"{url}/-/ready", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    raise AssertionError(f"it is not ready: {log.read_text()[-500:]}")


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port
