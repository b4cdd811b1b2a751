"""What looking back for the sources of findings has found; written once for each finding."""

from collections.abc import Collection, Iterable

import msgspec
from sqlalchemy import Connection, insert, select

from detector.finding import Finding, Party, Run
from exporters.store.tables import findings, look_backs


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One probable source; the first of a list is the likeliest."""

    party: Party
    engine: str
    confidence: str
    unexplained_tokens: int
    runs: tuple[Run, ...]


class StoredLookBack(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one finding: the probable sources, or why they could not be looked for.

    `sequences` and `tokens` were searched; `is_complete` is False if there was no time for all.
    """

    finding_id: str
    at_ms: int
    sources: tuple[Source, ...] = ()
    sequences: int = 0
    tokens: int = 0
    is_complete: bool = True
    problem: str | None = None


_DECODER = msgspec.json.Decoder(StoredLookBack)
_FINDING = msgspec.json.Decoder(Finding)


def put(connection: Connection, one: StoredLookBack) -> None:
    """Write it if the finding is there and nobody has written one before."""
    chosen = select(findings.c.id).where(findings.c.id == one.finding_id)
    if connection.execute(chosen).first() is None or look_backs_of(connection, [one.finding_id]):
        return
    body = msgspec.json.encode(one).decode()
    connection.execute(
        insert(look_backs).values(finding_id=one.finding_id, at_ms=one.at_ms, body=body)
    )


def look_backs_of(connection: Connection, finding_ids: Iterable[str]) -> list[StoredLookBack]:
    """Return what was found for some findings, in the order of time."""
    wanted = look_backs.c.finding_id.in_(list(finding_ids))
    rows = connection.execute(select(look_backs).where(wanted).order_by(look_backs.c.at_ms))
    return [_DECODER.decode(row.body) for row in rows]


def not_looked_back(
    connection: Connection, rules: Collection[str], *, since_ms: int, limit: int
) -> list[Finding]:
    """Return findings of some rules detected since then that have none yet, the latest first."""
    done = select(look_backs.c.finding_id).where(look_backs.c.finding_id == findings.c.id)
    rows = connection.execute(
        select(findings.c.body)
        .where(findings.c.rule.in_(rules), findings.c.detected_at_ms >= since_ms, ~done.exists())
        .order_by(findings.c.detected_at_ms.desc())
        .limit(limit)
    )
    return [_FINDING.decode(row.body) for row in rows]
