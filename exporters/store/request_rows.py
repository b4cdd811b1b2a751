"""Rows of requests in the store: one for each request, put together from all that come for it."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, and_, insert, select, tuple_, update

from exporters.store.tables import request_rows

KEYS_PER_STATEMENT: Final = 500
"""4 values each; SQLite takes 32,766 values in a statement, PostgreSQL 65,535."""

UNSEEN: Final = frozenset({"prompt_unseen", "response_unseen", "parts_missing"})
"""Flags for what a row does not know: another row that does know takes them away."""

_FLAGS: Final = msgspec.json.Decoder(tuple[str, ...])

_T = TypeVar("_T", int, str)


class StoredRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request without its tokens. What is absent is unknown; an empty model too."""

    tenant: str
    request_id: str
    kv_pool: str
    engine: str
    model: str
    started_at_ms: int
    ended_at_ms: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    finish_reason: str | None = None
    status: int | None = None
    rejected_by: str | None = None
    flags: tuple[str, ...] = ()


class RequestKey(NamedTuple):
    """What names a request."""

    tenant: str
    request_id: str
    started_at_ms: int
    kv_pool: str


def put_requests(connection: Connection, rows: Iterable[StoredRequest]) -> None:
    """Write rows, together with what is known of the same requests."""
    told: dict[RequestKey, StoredRequest] = {}
    for row in rows:
        key = _key(row)
        told[key] = put_together(told[key], row) if key in told else row
    for keys in _chunks(list(told)):
        known = {_key(one): one for one in _read(connection, keys)}
        fresh = [_values(told[key]) for key in keys if key not in known]
        if fresh:
            connection.execute(insert(request_rows), fresh)
        for key, before in known.items():
            after = put_together(before, told[key])
            if after != before:
                connection.execute(update(request_rows).where(_is(key)).values(_values(after)))


def requests_named(connection: Connection, request_id: str, *, limit: int) -> list[StoredRequest]:
    """Return the requests with an id, of whatever tenant, the latest first."""
    found = connection.execute(
        select(request_rows)
        .where(request_rows.c.request_id == request_id)
        .order_by(request_rows.c.started_at_ms.desc())
        .limit(limit)
    )
    return [_stored(row) for row in found]


def put_together(one: StoredRequest, other: StoredRequest) -> StoredRequest:
    """Return what two rows say of one request; the order of the two does not matter."""
    both = {*one.flags, *other.flags}
    unseen = UNSEEN & set(one.flags) & set(other.flags)
    answered = [row for row in (one, other) if row.completion_tokens is not None]
    engines = {row.engine for row in answered or (one, other)}
    return StoredRequest(
        tenant=one.tenant,
        request_id=one.request_id,
        kv_pool=one.kv_pool,
        engine=min(engines),
        model=max(one.model, other.model),
        started_at_ms=one.started_at_ms,
        ended_at_ms=_largest(one.ended_at_ms, other.ended_at_ms),
        prompt_tokens=_largest(one.prompt_tokens, other.prompt_tokens),
        completion_tokens=_largest(one.completion_tokens, other.completion_tokens),
        finish_reason=_largest(one.finish_reason, other.finish_reason),
        status=_largest(one.status, other.status),
        rejected_by=_largest(one.rejected_by, other.rejected_by),
        flags=tuple(sorted((both - UNSEEN) | unseen)),
    )


def _largest(one: _T | None, other: _T | None) -> _T | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _key(row: StoredRequest) -> RequestKey:
    return RequestKey(row.tenant, row.request_id, row.started_at_ms, row.kv_pool)


def _chunks(keys: Sequence[RequestKey]) -> Iterator[Sequence[RequestKey]]:
    for start in range(0, len(keys), KEYS_PER_STATEMENT):
        yield keys[start : start + KEYS_PER_STATEMENT]


def _read(connection: Connection, keys: Sequence[RequestKey]) -> list[StoredRequest]:
    columns = tuple_(*(request_rows.c[name] for name in RequestKey._fields))
    found = connection.execute(select(request_rows).where(columns.in_(keys)))
    return [_stored(row) for row in found]


def _is(key: RequestKey) -> ColumnElement[bool]:
    return and_(*(request_rows.c[name] == value for name, value in key._asdict().items()))


def _stored(row: Row[Any]) -> StoredRequest:
    values = row._asdict()
    return StoredRequest(**{**values, "flags": _FLAGS.decode(values["flags"])})


def _values(row: StoredRequest) -> dict[str, Any]:
    return {**msgspec.structs.asdict(row), "flags": msgspec.json.encode(row.flags).decode()}
