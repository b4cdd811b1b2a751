"""The watching side of the proxy: what of a request and its answer is changed and kept.

Nothing here raises: what goes wrong is counted as blind, and the bytes pass as they came.
"""

import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ingest.sources.base import RawRequest
from ingest.tap.blind import Blind
from ingest.tap.dialects import DIALECTS, Dialect
from ingest.tap.exchange import Exchange, Known
from ingest.tap.finished import Finished
from ingest.tap.question import UNREADABLE, Client
from ingest.tap.rewriting import Rewriting
from ingest.tap.room import Room
from ingest.tap.settings import TapSettings
from ingest.tenancy import ApiKeyRule, FieldRule, HeaderRule, Tenancy, TenancySettings

_log = logging.getLogger(__name__)

ID_BYTES: Final = 16
"""128 random bits as 32 digits: all ids have one width, since SGLang aborts by prefix."""

Headers = Iterable[tuple[bytes, bytes]]

Isolate = Callable[[str, str | None], str]
"""Returns a tag of a tenant, and of what a client has given itself."""


class Begun(NamedTuple):
    """A request as it is to be sent, and what is kept of its answer."""

    body: bytes
    rewriting: Rewriting | None

    def __repr__(self) -> str:
        """Show no text."""
        return f"Begun({len(self.body)} bytes)"


@dataclass(slots=True)
class Watch:
    """Decides for each request what is asked and kept. For one event loop."""

    settings: TapSettings
    tenancy: Tenancy
    rules: TenancySettings
    isolate: Isolate
    room: Room
    blind: Blind
    finished: Finished
    now_ms: Callable[[], int] = lambda: int(time.time() * 1000)

    def dialect(self, method: str, path: str) -> Dialect | None:
        """Return how a call is to be treated, None for one that generates nothing."""
        return DIALECTS[self.settings.engine_kind].get(path) if method == "POST" else None

    def begin(self, dialect: Dialect, headers: Headers, body: bytes) -> Begun:
        """Return what to send in place of a whole body."""
        try:
            return self._begin(dialect, dict(headers), body)
        except UNREADABLE:
            self.blind.count("not_json")
        except Exception as error:  # noqa: BLE001 - a fault of ours must not fail a client
            self.fault("a request passed unread", error)
        return Begun(body, None)

    def fault(self, what: str, error: Exception) -> None:
        """Count a fault of ours and tell its kind; its message may hold anything."""
        _log.warning("%s because of a fault (%s)", what, type(error).__name__)
        self.blind.count("fault")

    def _begin(self, dialect: Dialect, headers: Mapping[bytes, bytes], body: bytes) -> Begun:
        client = Client(body, dialect)
        tenant = self._tenant(client, dialect, headers)
        if tenant is None:
            self.blind.count("unmapped")
            return Begun(body, None)
        request_id = dialect.id_prefix + secrets.token_hex(ID_BYTES)
        question = client.question(
            request_id=request_id, isolation=self._isolation(client, dialect, tenant)
        )
        known = Known(
            request_id=request_id,
            started_at_ms=self.now_ms(),
            tenant=tenant,
            is_numbered=dialect.numbers_all,
            model=client.field("model"),
            roles=client.roles,
            session=client.field("session_id"),
            end_user=client.field("user"),
        )
        exchange = Exchange(known, self.room, self.blind, most_tokens=self.settings.request_tokens)
        if not question.asks:
            exchange.missed("echo" if client.echoes else "not_offered")
        return Begun(question.body, Rewriting(self, exchange, dialect, question.hidden))

    def _tenant(
        self, client: Client, dialect: Dialect, headers: Mapping[bytes, bytes]
    ) -> str | None:
        """Find the tenant by what the rules look at; nothing else of the request is looked at."""
        identity: dict[str, str] = {}
        for rule in self.rules.rules:
            if isinstance(rule, HeaderRule):
                name = f"header:{rule.name.lower()}"
            elif isinstance(rule, FieldRule | ApiKeyRule):
                name = rule.name.lower()
            else:
                continue
            value = (
                headers.get(name.removeprefix("header:").encode(), b"").decode("latin-1")
                if name.startswith("header:")
                else client.field(name)
            )
            if value:
                identity[name] = value
        given = client.field(dialect.id_field) or headers.get(b"x-request-id", b"").decode(
            "latin-1"
        )
        return self.tenancy.tenant(RawRequest(request_id=given, started_at_ms=0, identity=identity))

    def _isolation(self, client: Client, dialect: Dialect, tenant: str) -> dict[str, str]:
        """Return the fields that keep a tenant apart; a client's own salt still counts."""
        return {
            name: tenant if name == "session_id" else self.isolate(tenant, client.field(name))
            for name in self.settings.isolate
            if name in dialect.isolation and not (name == "session_id" and client.field(name))
        }
