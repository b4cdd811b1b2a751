"""The blast radius: whose requests ran in a KV pool within a time, and which of them look at fault.

The answer counts every stored row, exactly; what was never stored, or is older than retention, is
not in it. An index holds all that is asked for, so rows themselves are not read.
"""

from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Subquery, and_, func, select

from exporters.store.tables import findings, request_rows

CONTRADICTIONS: Final = "BW1"
"""How the ids of rules begin whose findings say that a request contradicts itself."""


class Scope(NamedTuple):
    """Which requests: those of one pool that started in a span of event time, both ends included.

    With triggers only those that all of them fit: prompts of more than `longer_than` tokens,
    requests that a contradiction was found about, requests of one engine.
    """

    kv_pool: str
    from_ms: int
    until_ms: int
    longer_than: int | None = None
    contradicted: bool = False
    engine: str | None = None


class BlastRadius(NamedTuple):
    """Requests by tenant, those with most requests first."""

    tenants: dict[str, int]

    @property
    def requests(self) -> int:
        """All of them."""
        return sum(self.tenants.values())


def blast_radius(connection: Connection, scope: Scope) -> BlastRadius:
    """Count the requests of a scope by tenant."""
    row = request_rows.c
    counted = select(row.tenant, func.count().label("requests"))
    if scope.contradicted:
        about = _contradicted(scope.kv_pool)
        same = and_(row.tenant == about.c.sink_tenant, row.request_id == about.c.sink_request)
        counted = counted.select_from(about.join(request_rows, same))
    found = connection.execute(counted.where(*_conditions(scope)).group_by(row.tenant))
    in_order = sorted(found, key=lambda one: (-one.requests, one.tenant))
    return BlastRadius({one.tenant: one.requests for one in in_order})


def _conditions(scope: Scope) -> list[ColumnElement[bool]]:
    row = request_rows.c
    wanted: list[ColumnElement[bool]] = [
        row.kv_pool == scope.kv_pool,
        row.started_at_ms.between(scope.from_ms, scope.until_ms),
    ]
    if scope.longer_than is not None:
        wanted.append(row.prompt_tokens > scope.longer_than)
    if scope.engine is not None:
        wanted.append(row.engine == scope.engine)
    return wanted


def _contradicted(kv_pool: str) -> Subquery:
    """Name the requests of a pool that findings contradict, each once."""
    return (
        select(findings.c.sink_tenant, findings.c.sink_request)
        .where(findings.c.kv_pool == kv_pool, findings.c.rule.startswith(CONTRADICTIONS))
        .distinct()
        .subquery()
    )
