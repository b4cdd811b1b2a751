"""A tap in this process before an engine, and what it has kept; without a sidecar behind it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from detector.model import Kind
from detector.sketch.token_table import TokenTable
from ingest.chat_template import ChatTemplate, ChatTemplateSettings
from ingest.coverage import Coverage
from ingest.door import Door
from ingest.schema_records import RequestRow, SequenceRecord
from ingest.tap.blind import Blind
from ingest.tap.engine import Engine
from ingest.tap.finished import Finished
from ingest.tap.isolation import isolation_tag
from ingest.tap.relay import Relay
from ingest.tap.room import Room
from ingest.tap.server import TapServer
from ingest.tap.settings import TapSettings
from ingest.tap.traffic import Traffic
from ingest.tap.watch import Watch
from ingest.tenancy import HeaderRule, Tenancy, TenancySettings

TENANT = {"x-tenant-id": "acme"}
TABLE = TokenTable(b"k" * 32, key_id="test")
PATIENCE_S = 20.0


def eventually(check: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """Wait until something is true that another thread is about to make true."""
    until_s = time.monotonic() + patience_s
    while not check():
        assert time.monotonic() < until_s, "it did not happen in time"
        time.sleep(0.005)


@dataclass
class Tapped:
    """A running tap; `hold` keeps its finished requests waiting."""

    watch: Watch
    traffic: Traffic
    server: TapServer
    hold: bool = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    @property
    def blind(self) -> dict[str, int]:
        self.settle()
        return self.watch.blind.counts()

    def settle(self) -> None:
        """Wait until no request is under way."""
        eventually(lambda: self.traffic.in_flight == 0)

    def records(self) -> list[SequenceRecord | RequestRow]:
        """Return what the sidecar would be given."""
        self.settle()
        return list(self.watch.finished.feed(0.0))

    def sequences(self, kind: Kind) -> list[SequenceRecord]:
        """Return the prompts or the responses among them; the rest is forgotten."""
        return [
            one for one in self.records() if isinstance(one, SequenceRecord) and one.kind is kind
        ]


@contextmanager
def tapped(
    engine_url: str,
    *,
    tenancy: TenancySettings | None = None,
    make_door: Callable[[TokenTable, Coverage], Door] | None = None,
    **settings: Any,
) -> Iterator[Tapped]:
    """Serve a tap before an engine until the block ends."""
    rules = tenancy or TenancySettings(rules=(HeaderRule(kind="header", name="X-Tenant-Id"),))
    chosen = TapSettings(engine_url=engine_url, port=0, drain_ms=1_000, **settings)
    blind, traffic = Blind(), Traffic()
    made: list[Tapped] = []
    watch = Watch(
        chosen,
        tenancy=Tenancy(rules),
        rules=rules,
        isolate=lambda tenant, given: isolation_tag(b"t" * 32, tenant, given),
        room=Room(chosen.held_bytes),
        blind=blind,
        finished=Finished(
            table=lambda _: TABLE,
            door=make_door or door,
            most_bytes=chosen.waiting_bytes,
            holds=lambda: made[0].hold,
        ),
    )
    engine = Engine(engine_url, connect_s=chosen.connect_ms / 1000)
    server = TapServer(Relay(engine, watch, traffic), engine, traffic, chosen)
    made.append(Tapped(watch, traffic, server))
    try:
        yield made[0]
    finally:
        server.close()


def door(table: TokenTable, coverage: Coverage) -> Door:
    """Return a door for requests whose tenant is known."""
    template = ChatTemplate(ChatTemplateSettings())
    return Door(table, Tenancy(TenancySettings()), template, coverage, default_engine="engine-0")


def hashes(ids: list[int]) -> bytes:
    """Return the hashes that a record of these ids has."""
    return TABLE.hash(np.asarray(ids, dtype=np.uint32)).astype("<u4").tobytes()
