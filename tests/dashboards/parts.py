"""The parts of a running installation as processes: each with the port of its metrics."""

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ingest.key_file import new_secret
from tests.e2e.program import PROGRAM, environment
from tests.services.ports import free_port
from tests.streams.real import make_cluster

TENANT: Final = "x-tenant-id"

NOWHERE: Final = "http://127.0.0.1:9"
"""The port of a protocol that discards: nobody listens there."""

ENGINE: Final = "engine-0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where everything is: files of one installation, and the ports of its processes."""

    folder: Path
    kafka: str
    prefix: str
    engine_url: str
    kv_endpoint: str
    ports: Mapping[str, int]

    @property
    def log(self) -> Path:
        """The requests that the sidecar reads."""
        return self.folder / "requests.jsonl"

    @property
    def engine_log(self) -> Path:
        """What the engine says."""
        return self.folder / "engine.log"

    def url(self, part: str) -> str:
        """Return where a port listens."""
        return f"http://127.0.0.1:{self.ports[part]}"

    def config(self, part: str) -> Path:
        """Write the configuration of a part and return its file."""
        path = self.folder / f"{part}.json"
        shared: dict[str, Any] = {
            "key_file": str(self.folder / "key"),
            "kafka": {
                "bootstrap_servers": self.kafka,
                "topic_prefix": self.prefix,
                "partitions": 2,
            },
            "tenancy": {
                "rules": [
                    {"kind": "header", "name": TENANT},
                    {"kind": "field", "name": "tenant"},
                    {"kind": "field", "name": "session_id"},
                ]
            },
            "detection": {"commonness": {"learning_ms": 0}},
            "heartbeat": {"every_ms": 2_000},
            "metrics": {"port": self.ports[part]},
        }
        path.write_text(json.dumps(shared | self._own(part)))
        return path

    def _own(self, part: str) -> dict[str, Any]:
        folder = self.folder
        outputs = [{"kind": "stdout", "name": "file", "path": str(folder / "alerts.jsonl")}]
        own: dict[str, dict[str, Any]] = {
            "worker": {},
            "api": {
                "store": {"url": f"sqlite:///{folder}/store.db"},
                "outputs": outputs,
                "api": {"port": 0},
            },
            "sidecar": {
                "sidecar": {"engine": ENGINE, "checkpoint_file": str(folder / "checkpoint")},
                "push": {"port": self.ports["push"]},
                "kv_events": {
                    "every_block": True,
                    "sources": [{"endpoint": self.kv_endpoint, "topic": "kv", "engine": ENGINE}],
                },
                "scrape": {
                    "targets": [
                        {
                            "url": self.engine_url,
                            "engine": ENGINE,
                            "probe_file": str(folder / "probe.json"),
                        }
                    ],
                    "interval_ms": 500,
                },
            },
            "tap": {
                "tap": {"engine_url": self.engine_url, "port": self.ports["proxy"]},
                "sidecar": {"engine": ENGINE},
            },
            "stranded": {
                "http": {"url": NOWHERE},
                "sidecar": {"checkpoint_file": str(folder / "stranded-checkpoint")},
                "spool": {"folder": str(folder / "spool"), "max_bytes": SPOOL, "after_ms": 100},
                "packing": {"target_bytes": 1_024},
            },
        }
        return own[part]

    def words(self, part: str) -> list[str]:
        """Return the command line of a part behind `bleedwatch run`."""
        files = {"sidecar": [self.log, self.engine_log], "stranded": [self.log]}
        command = "sidecar" if part == "stranded" else part
        return [command, *map(str, files.get(part, ())), "--config", str(self.config(part))]


SPOOL: Final = 2**16
"""Smaller than what it is to hold, so that it drops."""

START_S: Final = 150.0
"""Compiling the kernels anew takes a minute on a busy machine."""

PARTS: Final = ("worker", "api", "sidecar", "tap", "stranded")


@contextmanager
def running(folder: Path, *, kafka: str, prefix: str, engine: str, kv: str) -> Iterator[Site]:
    """Run a worker, an api, a sidecar, a tap, and a sidecar whose receiver is away."""
    new_secret(folder / "key")
    make_cluster(kafka, prefix, folder / "key")
    site = Site(
        folder=folder, kafka=kafka, prefix=prefix, engine_url=engine, kv_endpoint=kv,
        ports={name: free_port() for name in (*PARTS, "push", "proxy")},
    )  # fmt: skip
    site.log.touch()
    site.engine_log.touch()
    setpriv = shutil.which("setpriv")
    with ExitStack() as stack:
        processes = {}
        for part in PARTS:
            said = stack.enter_context((folder / f"{part}.log").open("wb"))
            command = [*PROGRAM, "run", *site.words(part)]
            if setpriv:
                command = [setpriv, "--pdeathsig", "KILL", *command]
            process = subprocess.Popen(command, stdout=said, stderr=said, env=environment())
            stack.callback(process.wait)
            stack.callback(process.kill)
            processes[part] = process
        for part, process in processes.items():
            _await(site, part, process)
        yield site


def _await(site: Site, part: str, process: "subprocess.Popen[bytes]") -> None:
    """Wait until a part is ready; a sidecar with nothing to read never is, but lives."""
    path = "/readyz" if part in {"worker", "api", "tap"} else "/livez"
    until_s = time.monotonic() + START_S
    while not _answers(f"{site.url(part)}{path}"):
        said = (site.folder / f"{part}.log").read_text()[-2000:]
        assert process.poll() is None, f"{part} ended: {said}"
        assert time.monotonic() < until_s, f"{part} is not ready in {START_S:g} s: {said}"
        time.sleep(0.1)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False
