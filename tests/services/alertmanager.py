"""A real Alertmanager of the Debian package, on a free port, that routes to one webhook."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.services.http_service import HttpService, http_service
from tests.services.packages import program
from tests.services.ports import free_port

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
    """One that runs. After `service.kill()` it can be started again, without its alerts."""

    url: str
    service: HttpService

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
    port = free_port()
    command = [
        program("prometheus-alertmanager", PACKAGE),
        f"--config.file={config}",
        f"--storage.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--cluster.listen-address=",
    ]
    url = f"http://127.0.0.1:{port}"
    log = folder / "alertmanager.log"
    with http_service(command, log, ready=f"{url}/-/ready") as service:
        yield Alertmanager(url, service)
