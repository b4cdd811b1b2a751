"""A real push port over a real intake, and a client that speaks HTTP to it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any, NamedTuple

from detector.sketch.token_table import Secret, TokenTable
from ingest.chat_template import ChatTemplate, ChatTemplateSettings
from ingest.coverage import Coverage
from ingest.door import Door
from ingest.push.app import PushApp
from ingest.push.body import Bodies
from ingest.push.intake import PushIntake
from ingest.push.pressure import BackPressure
from ingest.push.server import PushServer
from ingest.push.settings import BackPressureSettings, PushSettings
from ingest.tenancy import FieldRule, HeaderRule, Tenancy, TenancySettings

JSON = "application/json"
KEYS = Secret(bytes(range(32))).keys()
TABLE = TokenTable(KEYS.hash_key, key_id=KEYS.key_id)
NOW_MS = 1_780_000_000_000


class Reply(NamedTuple):
    """What the port answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


class Port:
    """The parts of a push port, and requests to it; `holds` makes the sidecar take no more."""

    def __init__(self, *, token: bytes | None = None, **settings: Any) -> None:
        given = PushSettings(**{"port": 0, **settings})
        self.holds = False
        self.not_ready: list[str] = []
        self.intake = PushIntake(
            table=lambda: TABLE,
            door=door,
            most_bytes=given.waiting_bytes,
            holds=lambda: self.holds,
        )
        self.pressure = BackPressure(BackPressureSettings(), clock=time.monotonic)
        app = PushApp(
            self.intake,
            self.pressure,
            Bodies(given, token),
            live=list,
            ready=lambda: self.not_ready,
        )
        self.server = PushServer(app.asgi(), given)

    def get(self, path: str) -> Reply:
        """Ask."""
        return self.ask("GET", path)

    def push(
        self, *requests: dict[str, Any], path: str = "/v1/sequences", name: str = "requests"
    ) -> Reply:
        """Push as JSON."""
        return self.send(json.dumps({name: requests}).encode(), path=path)

    def send(self, body: Any, *, path: str = "/v1/sequences", **headers: str) -> Reply:
        """Push these bytes, or these chunks; `content_type` and other headers by name."""
        given = {"Content-Type": JSON} | {k.replace("_", "-"): v for k, v in headers.items()}
        return self.ask("POST", path, body, {k.title(): v for k, v in given.items()})

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """Send one request on a connection of its own."""
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Reply(answer.status, found, answer.read())
        finally:
            connection.close()


def door(table: TokenTable, coverage: Coverage) -> Door:
    """Return a door that finds tenants in the field or in a header."""
    rules = (FieldRule(), HeaderRule(kind="header", name="x-tenant-id"))
    tenancy = Tenancy(TenancySettings(rules=rules))
    return Door(table, tenancy, ChatTemplate(ChatTemplateSettings()), coverage)


def request(**more: Any) -> dict[str, Any]:
    """Return a request as a gateway pushes it."""
    return {
        "request_id": "r-1",
        "tenant": "acme",
        "engine": "engine-0",
        "model": "m",
        "started_at_ms": NOW_MS,
        "ended_at_ms": NOW_MS + 900,
        "prompt_ids": list(range(100, 130)),
        "response_ids": list(range(500, 520)),
        **more,
    }


@contextmanager
def opened(**settings: Any) -> Iterator[Port]:
    """Run a port for the time of a `with` block."""
    port = Port(**settings)
    try:
        yield port
    finally:
        port.server.close()
