"""What tests of alerts share: incidents that change, a store in a file, a clock that is set."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection

from detector.finding import Confidence, Severity
from exporters.incidents.model import Change, ChangeKind, Incident, Lead, State
from exporters.outputs.notification import Kind, Notification
from exporters.store import incidents
from exporters.store.database import Database, open_store
from exporters.store.settings import StoreSettings

NOW_MS = 1_800_000_000_000


class Clock:
    """Milliseconds that only move when they are moved."""

    def __init__(self, at_ms: int = NOW_MS) -> None:
        self.at_ms = at_ms

    def __call__(self) -> int:
        return self.at_ms


def incident(name: str = "inc-1", *, at_ms: int = NOW_MS, **changed: Any) -> Incident:
    """Return an open incident of two tenants."""
    lead = Lead(
        finding_id=name,
        rule="BW001",
        severity=Severity.HIGH,
        confidence=Confidence.HIGH,
        kv_pool="pool-a",
        observed_from_ms=at_ms,
        explanation="A response to globex repeats 31 tokens of a prompt of acme.",
    )
    made = Incident(
        id=name,
        state=State.OPEN,
        lead=lead,
        opened_at_ms=at_ms,
        last_seen_ms=at_ms,
        created_at_ms=at_ms,
        heard_at_ms=at_ms,
        finding_count=1,
        kv_pools=("pool-a",),
        rules=("BW001",),
        tenants=("acme", "globex"),
        version=1,
    )
    return msgspec.structs.replace(made, **changed)


def change(
    kind: ChangeKind = ChangeKind.OPENED,
    name: str = "inc-1",
    *,
    version: int = 1,
    at_ms: int = NOW_MS,
    **changed: Any,
) -> Change:
    """Return a change of such an incident."""
    if kind in {ChangeKind.RESOLVED, ChangeKind.MERGED}:
        changed = {"state": State.RESOLVED, "resolved_at_ms": at_ms, **changed}
    after = incident(name, at_ms=at_ms, version=version, **changed)
    return Change(incident=after, kind=kind, at_ms=at_ms, reason="first finding, of BW001")


def keep(connection: Connection, changes: Iterable[Change]) -> None:
    """Write incidents as they are after their changes, as is done where these are announced."""
    for one in changes:
        incidents.put(connection, one.incident)


def notification(kind: Kind = Kind.OPENED, **changed: Any) -> Notification:
    """Return what an output is told of such an incident."""
    made = Notification(
        id="ntf-0123456789abcdef",
        kind=kind,
        incident_id="inc-1",
        sequence=1,
        created_at_ms=NOW_MS,
        severity=Severity.HIGH,
        confidence=Confidence.HIGH,
        rules=("BW001",),
        kv_pools=("pool-a",),
        tenants=("acme", "globex"),
        finding_count=2,
        opened_at_ms=NOW_MS - 5_000,
        last_seen_ms=NOW_MS,
        title="A response to globex repeats 31 tokens of a prompt of acme.",
        reason="first finding, of BW001",
        link="https://monitor.example/incidents/inc-1",
    )
    return msgspec.structs.replace(made, **changed)


def secret_file(folder: Path, name: str, text: str) -> str:
    """Write a file that only its owner can read; return its path."""
    path = folder / name
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


@contextmanager
def store(folder: Path) -> Iterator[Database]:
    """Give a store in a new file."""
    database = open_store(StoreSettings(url=f"sqlite:///{folder}/alerts.db"))
    try:
        yield database
    finally:
        database.close()
