"""The configuration of the demo cluster, as one file that an operator would write."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from detector.config.load import load_settings
from detector.config.root import Settings
from ingest.key_file import new_secret
from tests.cluster.process import Process
from tests.e2e.program import PROGRAM
from tests.services.ports import free_port

ENGINES: Final = {"engine-0": "sglang", "engine-1": "sglang", "engine-2": "vllm"}
"""Name to kind. Names are those of the sample traffic; each engine is a KV pool of its own."""

SECRET: Final = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

QUIET_S: Final = 12
"""An incident is resolved after so much silence: minutes in earnest, seconds to be seen here."""

FASTER: Final = {
    "scrape": {"interval_ms": 500},
    "runtime": {"hold_ms": "1s", "unreleased_exact_ms": "2s"},
    "incidents": {"quiet_ms": f"{QUIET_S}s"},
}
"""What differs from the defaults because nobody wants to watch for minutes."""


@dataclass(frozen=True)
class Site:
    """One installation: its folder, what it uses, and the ports of its processes."""

    folder: Path
    kafka: str
    store_url: str
    store_password: Path
    alertmanager: str
    webhook: str
    ports: dict[str, int] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        """The configuration file."""
        return self.folder / "bleedwatch.yaml"

    @property
    def settings(self) -> Settings:
        """What the program makes of it."""
        return load_settings(str(self.config), environment={}).settings

    @property
    def triage(self) -> str:
        """Where the api serves people."""
        return f"http://127.0.0.1:{self.port('api-http')}"

    def port(self, name: str) -> int:
        """Return the port of one purpose, the same every time."""
        return self.ports.setdefault(name, free_port())

    def engine_url(self, engine: str) -> str:
        """Return where an engine serves."""
        return f"http://127.0.0.1:{self.port(engine)}"

    def write(self) -> None:
        """Write the configuration and the files that it names."""
        new_secret(self.folder / "secret.key")
        hook = self.folder / "webhook.secret"
        hook.write_text(f"{SECRET}\n")
        hook.chmod(0o600)
        self.config.write_text(yaml.safe_dump(self._document(), sort_keys=False))

    def _document(self) -> dict[str, Any]:
        return {
            "key_file": str(self.folder / "secret.key"),
            "kafka": {"bootstrap_servers": self.kafka, "partitions": 4},
            "tenancy": {
                "rules": [
                    {"kind": "header", "name": "x-tenant-id"},
                    {"kind": "field", "name": "user"},
                    {"kind": "field", "name": "tenant"},
                ]
            },
            "template": {"family": "chatml"},
            "sidecar": {"own_logs": True},
            "store": {"url": self.store_url, "password_file": str(self.store_password)},
            "outputs": [
                {
                    "kind": "alertmanager", "name": "alertmanager", "url": self.alertmanager,
                    "allow_private": True,
                },
                {
                    "kind": "webhook", "name": "security-desk", "url": self.webhook,
                    "allow_private": True, "secrets_file": str(self.folder / "webhook.secret"),
                },
            ],
            "sending": {"external_url": self.triage},
            **FASTER,
        }  # fmt: skip

    def command(self, *words: str) -> list[str]:
        """Return the command line of one call of the program."""
        return [*PROGRAM, *words, "--config", str(self.config)]

    def process(self, name: str, *words: str, **settings: str) -> Process:
        """Return a process of the program; `settings` are those that it alone has, as variables."""
        port = self.port(name)
        variables = {f"BLEEDWATCH_{setting}": value for setting, value in settings.items()}
        return Process(
            name,
            self.command("run", *words),
            log=self.folder / f"{name}.log",
            ready=f"http://127.0.0.1:{port}/readyz",
            variables={"BLEEDWATCH_METRICS__PORT": str(port), **variables},
        )

    def sidecar(self, engine: str) -> Process:
        """Return the sidecar beside an engine."""
        log = self.folder / "logs" / f"{engine}.log"
        target = {"url": self.engine_url(engine), "engine": engine}
        return self.process(
            f"sidecar-{engine}",
            *("sidecar", str(log), "--engine", engine),
            *("--checkpoint", str(self.folder / f"{engine}.checkpoint")),
            SCRAPE__TARGETS=yaml.safe_dump([target], default_flow_style=True, width=1000).strip(),
        )

    def engine(self, name: str) -> Process:
        """Return a simulated engine."""
        log = self.folder / "logs" / f"{name}.log"
        log.parent.mkdir(exist_ok=True)
        words = ("-m", "tests.cluster.logged_engine", ENGINES[name], str(log))
        return Process(
            name,
            [sys.executable, *words, str(self.port(name))],
            log=self.folder / f"{name}.stderr",
            ready=f"{self.engine_url(name)}/health",
        )
