"""An API over a real store, served on a real port, and clients of it."""

import itertools
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from prometheus_client import CollectorRegistry

from detector.alerting import announcer, send_test
from detector.config.root import Settings
from detector.finding import Finding
from exporters.http.access import Access
from exporters.http.app import guarded
from exporters.http.parts import Parts
from exporters.http.server import HttpServer
from exporters.http.shown_metrics import metrics_of
from exporters.store.database import Database, open_store
from exporters.store.recording import record_findings
from exporters.store.request_rows import StoredRequest, put_requests
from exporters.store.settings import StoreSettings
from ingest.http_port import PatientProtocol, listening
from tests.store.made import SETTINGS

NOW_MS = 1_800_000_000_000
READER = "reader-token-0123456789abcdef"
WRITER = "writer-token-0123456789abcdef"
HOUR_MS = 3_600_000


class Served(NamedTuple):
    """A running API: its store, its address, and what it is made of."""

    database: Database
    url: str
    parts: Parts

    def client(self, token: str | None = None, **more: Any) -> httpx.Client:
        """Return a client that brings a token."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, trust_env=False, **more)

    def record(self, *findings: Finding) -> None:
        """Store findings, and what they make of incidents."""
        with self.database.write() as connection:
            record_findings(connection, findings, SETTINGS, now_ms=NOW_MS)

    def request(self, *rows: StoredRequest) -> None:
        """Store rows of requests."""
        with self.database.write() as connection:
            put_requests(connection, rows)


def token_files(folder: Path) -> dict[str, str]:
    """Write the files of tokens and return the settings that name them."""
    named = {"read": ("rita", READER), "write": ("walt", WRITER)}
    settings = {}
    for scope, (name, token) in named.items():
        path = folder / f"{scope}-tokens"
        path.write_text(f"# who may {scope}\n{name} {token}\n")
        path.chmod(0o600)
        settings[f"{scope}_tokens_file"] = str(path)
    return settings


@contextmanager
def served(
    folder: Path, *, api: dict[str, Any] | None = None, outputs: Sequence[dict[str, Any]] = ()
) -> Iterator[Served]:
    """Serve an API with the settings, with tokens unless others are given."""
    given = {
        "api": token_files(folder) if api is None else api,
        "outputs": list(outputs),
        "store": {"url": f"sqlite:///{folder}/store.db"},
    }
    settings = Settings.model_validate(given)
    with closing(open_store(StoreSettings(url=settings.store.url))) as database:
        ticks = itertools.count()
        parts = Parts(
            database=database,
            outputs=settings.outputs,
            announce=announcer(settings),
            on_change=lambda: None,
            send_test=lambda _names: send_test(settings, database),
            metrics=metrics_of(CollectorRegistry()),
            not_ready=lambda: [],
            now_ms=lambda: NOW_MS + next(ticks),
        )
        access = Access(settings.api, clock=lambda: 0.0, now_ms=lambda: NOW_MS)
        with _listening() as bound:
            server = HttpServer(guarded(parts, access), bound, protocol=PatientProtocol)
            try:
                yield Served(database, f"http://127.0.0.1:{server.port}", parts)
            finally:
                server.close()


@contextmanager
def _listening() -> Iterator[socket.socket]:
    with listening("127.0.0.1", 0, section="api") as bound:
        yield bound


def row(number: int, *, tenant: str = "acme", pool: str = "a", **more: Any) -> StoredRequest:
    """Return a row of a request that began so many seconds after the beginning of tests."""
    return StoredRequest(
        tenant=tenant,
        request_id=f"req-{number}",
        kv_pool=pool,
        engine="engine-1",
        model="m",
        started_at_ms=number * 1000,
        **more,
    )
