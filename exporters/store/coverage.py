"""Coverage: how much of what ran in each KV pool was seen, by the rows of its requests."""

from collections import Counter

import msgspec
from sqlalchemy import Connection, func, select

from exporters.store.tables import request_rows

_FLAGS = msgspec.json.Decoder(tuple[str, ...])


class PoolCoverage(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of one pool: all of them, rejected ones, and those with something that was not seen.

    `flags` counts requests by the words that their rows carry, such as `response_unseen`.
    """

    kv_pool: str
    requests: int
    rejected: int
    flags: dict[str, int]


def coverage(connection: Connection, *, since_ms: int, until_ms: int) -> list[PoolCoverage]:
    """Count the requests that began in a span of event time, both ends included, by pool."""
    row = request_rows.c
    counted = connection.execute(
        select(row.kv_pool, row.flags, func.count(), func.count(row.rejected_by))
        .where(row.started_at_ms.between(since_ms, until_ms))
        .group_by(row.kv_pool, row.flags)
    )
    requests: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    flags: dict[str, Counter[str]] = {}
    for kv_pool, words, count, refused in counted:
        requests[kv_pool] += count
        rejected[kv_pool] += refused
        of_pool = flags.setdefault(kv_pool, Counter())
        for word in _FLAGS.decode(words):
            of_pool[word] += count
    return [
        PoolCoverage(
            kv_pool=kv_pool,
            requests=requests[kv_pool],
            rejected=rejected[kv_pool],
            flags=dict(sorted(flags[kv_pool].items())),
        )
        for kv_pool in sorted(requests)
    ]
