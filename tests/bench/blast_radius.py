"""Measures the blast radius on many rows of requests in one pool: `make blast-radius-bench`."""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final

from sqlalchemy import text

from exporters.store.blast_radius import Scope, blast_radius
from exporters.store.database import Database, open_store
from exporters.store.settings import StoreSettings
from exporters.store.tables import request_rows

ROWS: Final = 10_000_000
TENANTS: Final = 1_000
SPAN_MS: Final = 30 * 86_400_000
"""The rows are spread over the whole retention."""

LONG: Final = 60_000
"""One prompt in 200 is longer."""

FILL: Final = """
WITH RECURSIVE made(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM made WHERE n + 1 < :rows)
INSERT INTO request_rows
SELECT 'tenant-' || (1000000 + n / :each), 'req-' || (100000000 + n), at_ms, 'pool',
       'engine-' || (n % 8), 'model', at_ms + 900, n * 40503 % 60300, 400, 'stop', 200, NULL, '[]'
FROM (SELECT n, n * 2654435761 % :span_ms AS at_ms FROM made)
"""
"""Rows in the order of their key, which is how SQLite writes many fast; times are scattered."""

CONTRADICT: Final = """
INSERT INTO findings
SELECT 'f' || request_id, 'BW101', 'high', 'high', kv_pool, engine, model,
       started_at_ms, started_at_ms, started_at_ms, started_at_ms,
       tenant, request_id, tenant, request_id, NULL, NULL, NULL, NULL, '{}'
FROM request_rows WHERE prompt_tokens > 60290
"""


def fill(database: Database, rows: int) -> None:
    """Write the rows, then the indexes: that is how SQLite writes many fast."""
    values = {"rows": rows, "each": max(1, rows // TENANTS), "span_ms": SPAN_MS}
    with database.write() as connection:
        for index in request_rows.indexes:
            index.drop(connection)
        connection.execute(text(FILL), values)
        for index in request_rows.indexes:
            index.create(connection)
        connection.execute(text(CONTRADICT))


def scopes() -> dict[str, Scope]:
    """Return what is asked, by what to call it."""
    everything = Scope("pool", 0, SPAN_MS)
    hour = Scope("pool", SPAN_MS // 2, SPAN_MS // 2 + 3_600_000)
    return {
        "an hour": hour,
        "an hour, prompts above a length": hour._replace(longer_than=LONG),
        "30 days": everything,
        "30 days, prompts above a length": everything._replace(longer_than=LONG),
        "30 days, one engine": everything._replace(engine="engine-3"),
        "30 days, contradicted": everything._replace(contradicted=True),
    }


def measure(rows: int, tell: Callable[[str], None]) -> None:
    """Fill a store and ask it; `tell` gets one line for each answer."""
    with tempfile.TemporaryDirectory(prefix="blast-radius-") as folder:
        path = Path(folder) / "store.db"
        settings = StoreSettings(url=f"sqlite:///{path}")
        with closing(open_store(settings)) as database:
            fill(database, rows)
        size = os.stat(path).st_size / 2**30
        tell(f"{rows:,} rows of {TENANTS:,} tenants, {size:.1f} GiB")
        with closing(open_store(settings)) as database:
            for name, scope in scopes().items():
                began, began_cpu = time.perf_counter(), time.process_time()
                with database.read() as connection:
                    found = blast_radius(connection, scope)
                took, cpu = time.perf_counter() - began, time.process_time() - began_cpu
                tell(f"| {name} | {found.requests:,} | {took:.2f} s | {cpu:.2f} s CPU |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    measure(parser.parse_args().rows, print)
