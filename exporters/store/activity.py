"""How many requests of a KV pool began when: bars of a histogram, from an index alone."""

from sqlalchemy import Connection, func, select

from exporters.store.tables import request_rows


def requests_over_time(
    connection: Connection, kv_pool: str, *, from_ms: int, until_ms: int, bucket_ms: int
) -> dict[int, int]:
    """Count the requests that began in each bucket of a span, from 0 on; empty ones are absent."""
    at_ms = request_rows.c.started_at_ms
    bucket = ((at_ms - from_ms) // bucket_ms).label("bucket")
    counted = connection.execute(
        select(bucket, func.count())
        .where(request_rows.c.kv_pool == kv_pool, at_ms.between(from_ms, until_ms))
        .group_by(bucket)
    )
    return {int(number): count for number, count in counted}
