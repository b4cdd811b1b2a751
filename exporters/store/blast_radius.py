"""The blast radius: whose requests ran in a KV pool within a time, and which of them look at fault.

The answer counts every stored row, exactly; what was never stored, or is older than retention, is
not in it. An index holds all that is counted by, so rows themselves are read only to list them.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, Subquery, and_, func, select

from exporters.incidents.grouping import Span
from exporters.store.tables import findings, request_rows

CONTRADICTIONS: Final = "BW1"
"""How the ids of rules begin whose findings say that a request contradicts itself."""

BEFORE_MS: Final = 300_000
"""How long before its first finding a blast radius begins: the window of detection."""

ROWS_AT_ONCE: Final = 1000
"""Rows held at once while requests are listed: some 200 KB."""

_Columns = TypeVar("_Columns", bound=tuple[Any, ...])


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


class Asked(NamedTuple):
    """How a blast radius differs from that of an incident's own span of time."""

    since_ms: int | None = None
    until_ms: int | None = None
    longer_than: int | None = None
    engine: str | None = None
    contradicted: bool = False


class AffectedRequest(NamedTuple):
    """One request of a scope; what is None is not known."""

    tenant: str
    request_id: str
    kv_pool: str
    engine: str
    model: str
    started_at_ms: int
    ended_at_ms: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    finish_reason: str | None
    status: int | None
    rejected_by: str | None


class BlastRadius(NamedTuple):
    """Requests by tenant, those with most requests first."""

    tenants: dict[str, int]

    @property
    def requests(self) -> int:
        """All of them."""
        return sum(self.tenants.values())


def blast_radius(connection: Connection, scope: Scope) -> BlastRadius:
    """Count the requests of a scope by tenant."""
    tenant = request_rows.c.tenant
    counted = _within(select(tenant, func.count().label("requests")), scope)
    found = connection.execute(counted.group_by(tenant))
    in_order = sorted(found, key=lambda one: (-one.requests, one.tenant))
    return BlastRadius({one.tenant: one.requests for one in in_order})


def affected_requests(connection: Connection, scope: Scope) -> Iterator[AffectedRequest]:
    """Yield the requests of a scope in the order of their start, a few at a time."""
    columns = [request_rows.c[name] for name in AffectedRequest._fields]
    chosen = _within(select(*columns), scope).order_by(request_rows.c.started_at_ms)
    with connection.execution_options(yield_per=ROWS_AT_ONCE).execute(chosen) as found:
        for row in found:
            yield AffectedRequest(*row)


def scopes_of(spans: Iterable[Span], asked: Asked) -> list[Scope]:
    """Return one scope for each pool, from before the first finding there to the last."""
    of_pool: dict[str, list[Span]] = {}
    for span in spans:
        of_pool.setdefault(span.kv_pool, []).append(span)
    return [
        Scope(
            kv_pool=kv_pool,
            from_ms=_or(asked.since_ms, min(span.from_ms for span in mine) - BEFORE_MS),
            until_ms=_or(asked.until_ms, max(span.until_ms for span in mine)),
            longer_than=asked.longer_than,
            contradicted=asked.contradicted,
            engine=asked.engine,
        )
        for kv_pool, mine in of_pool.items()
    ]


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _within(chosen: Select[_Columns], scope: Scope) -> Select[_Columns]:
    """Leave of a selection of requests those of a scope."""
    row = request_rows.c
    if scope.contradicted:
        about = _contradicted(scope.kv_pool)
        same = and_(row.tenant == about.c.sink_tenant, row.request_id == about.c.sink_request)
        chosen = chosen.select_from(about.join(request_rows, same))
    return chosen.where(*_conditions(scope))


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
