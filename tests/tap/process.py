"""`bleedwatch run tap` as a process of its own."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ingest.key_file import new_secret
from tests.e2e.program import PROGRAM, environment
from tests.tap.kit import eventually

START_S = 60.0


@dataclass
class TapProcess:
    """A running tap: where it listens, and where it tells its health."""

    process: "subprocess.Popen[bytes]"
    url: str
    health: str
    said: Path

    def kill(self) -> None:
        """End it at once, with everything in its memory."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> int:
        """Tell it to stop; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def tap_process(
    folder: Path, engine_url: str, *, port: int = 0, cores: str | None = None, **settings: object
) -> Iterator[TapProcess]:
    """Run a tap that sends to a receiver which is away, with a spool; it is killed at last."""
    key = folder / "key"
    if not key.exists():
        new_secret(key)
    config = folder / "config.yaml"
    config.write_text(
        json.dumps(
            {
                "key_file": str(key),
                "tap": {"engine_url": engine_url, "port": port} | settings,
                "http": {"url": "http://127.0.0.1:9"},
                "spool": {"folder": str(folder / "spool")},
                "metrics": {"port": 0},
                "sidecar": {"grace_ms": 2_000},
                "tenancy": {"rules": [{"kind": "header", "name": "x-tenant-id"}]},
            }
        )
    )
    said = folder / "said"
    pinned = ["taskset", "-c", cores] if cores else []
    with said.open("wb") as out:
        process = subprocess.Popen(
            [*pinned, *PROGRAM, "run", "tap", "--config", str(config)],
            stdin=subprocess.DEVNULL,
            stderr=out,
            env=environment(),
        )
    try:
        eventually(lambda: b"health" in said.read_bytes() or process.poll() is not None, START_S)
        found = re.search(r"tap on port (\d+) .*health on port (\d+)", said.read_text())
        assert found, said.read_text()
        url, health = (f"http://127.0.0.1:{one}" for one in found.groups())
        yield TapProcess(process, url, health, said)
    finally:
        process.kill()
        process.wait()
