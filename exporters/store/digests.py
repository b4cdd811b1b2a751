"""Keyed digests of the shingles that findings rest on; apart from them, so that lists are short."""

from typing import Final

import msgspec
from sqlalchemy import Connection, insert, select, update

from detector.finding import Digests
from exporters.store.tables import finding_digests, findings
from exporters.store.verdicts import Verdict


class FindingDigests(msgspec.Struct, frozen=True, kw_only=True):
    """Those of one finding; `key` names the secret they are made under, `shingles` is base64."""

    finding: str
    key: str
    shingles: bytes


_STORED: Final = select(
    finding_digests.c.finding_id, finding_digests.c.key_id, finding_digests.c.shingles
)


def put(connection: Connection, finding_id: str, told: Digests) -> None:
    """Keep the digests of a finding that is there; of its versions those that are most."""
    known = digests_of(connection, finding_id)
    values = {"key_id": told.key, "shingles": told.shingles}
    if known is None:
        connection.execute(insert(finding_digests).values(finding_id=finding_id, **values))
    elif len(known.shingles) < len(told.shingles):
        mine = finding_digests.c.finding_id == finding_id
        connection.execute(update(finding_digests).where(mine).values(**values))


def digests_of(connection: Connection, finding_id: str) -> FindingDigests | None:
    """Return the digests of a finding; None if it has none."""
    chosen = _STORED.where(finding_digests.c.finding_id == finding_id)
    row = connection.execute(chosen).first()
    return None if row is None else _digests(row)


def false_positives(connection: Connection, *, limit: int, after: str = "") -> list[FindingDigests]:
    """Return the digests of findings that were judged to be none, by id, from behind `after` on."""
    chosen = (
        _STORED.join(findings, findings.c.id == finding_digests.c.finding_id)
        .where(findings.c.verdict == Verdict.FALSE_POSITIVE.value, findings.c.id > after)
        .order_by(findings.c.id)
        .limit(limit)
    )
    return [_digests(row) for row in connection.execute(chosen)]


def _digests(row: tuple[str, str, bytes]) -> FindingDigests:
    finding_id, key_id, shingles = row
    return FindingDigests(finding=finding_id, key=key_id, shingles=bytes(shingles))
