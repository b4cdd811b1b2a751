"""A blast radius without a store: what the broker retains is put into one that is thrown away.

So rows are put together, filtered and counted by what does it for the store, and come out the same.
"""

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final, NamedTuple

from detector.api.reading import read_finding, read_rows
from detector.config.root import Settings
from detector.errors import RecordError
from exporters.store.blast_radius import CONTRADICTIONS, Scope
from exporters.store.database import Database, open_store
from exporters.store.recording import record_findings
from exporters.store.request_rows import StoredRequest, put_requests
from exporters.store.settings import StoreSettings
from ingest.broker import BrokerRecord, Reader, TopicPartition
from ingest.partitioning import partition_of
from ingest.retained import Retained
from ingest.topics import topic_names

ROWS_PER_TRANSACTION: Final = 5_000


class Kept(NamedTuple):
    """What was read: rows of the scope's pool and time, records that were not understood.

    `first_sent_ms` is when the first record that is still kept was sent, where earlier ones may
    have been deleted that belong to the scope; else None.
    """

    rows: int
    refused: int
    first_sent_ms: int | None


@contextmanager
def retained_store(
    reader: Reader, settings: Settings, scope: Scope
) -> Iterator[tuple[Database, Kept]]:
    """Give a store of the requests of a scope, and of what contradicts them, as topics hold them.

    Raises BrokerError if a topic is not there, or not read to its end.
    """
    names = topic_names(settings.kafka.topic_prefix)
    with (
        tempfile.TemporaryDirectory(prefix="bleedwatch-") as folder,
        closing(open_store(StoreSettings(url=f"sqlite:///{folder}/retained.db"))) as database,
    ):
        kept = _take_rows(reader, database, scope, settings, _place(reader, names.requests, scope))
        if scope.contradicted:
            at = _place(reader, names.findings, scope)
            refused = _take_findings(reader, database, scope, settings, at)
            kept = kept._replace(refused=kept.refused + refused)
        yield database, kept


def _place(reader: Reader, topic: str, scope: Scope) -> TopicPartition:
    """Return the partition that holds everything about the pool."""
    count = reader.partitions(topic)
    return TopicPartition(topic, partition_of(scope.kv_pool.encode(), count))


def _take_rows(
    reader: Reader, database: Database, scope: Scope, settings: Settings, at: TopicPartition
) -> Kept:
    """Store the rows of the scope. A row is sent after its request has begun, never before."""
    sent_from_ms = scope.from_ms - settings.stream.ahead_ms
    waiting: list[StoredRequest] = []
    total = refused = 0
    first: BrokerRecord | None = None
    for message in Retained(reader).whole([at], sent_from_ms=sent_from_ms):
        first = message if first is None else first
        read = read_rows(message)
        waiting += [one for one in read.rows if _is_within(one, scope)]
        refused += len(read.refused)
        if len(waiting) >= ROWS_PER_TRANSACTION:
            total += _put(database, waiting)
    total += _put(database, waiting)
    return Kept(total, refused, _gap(first, reader.beginning(at), scope))


def _is_within(row: StoredRequest, scope: Scope) -> bool:
    return row.kv_pool == scope.kv_pool and scope.from_ms <= row.started_at_ms <= scope.until_ms


def _put(database: Database, waiting: list[StoredRequest]) -> int:
    with database.write() as connection:
        put_requests(connection, waiting)
    count = len(waiting)
    waiting.clear()
    return count


def _gap(first: BrokerRecord | None, beginning: int, scope: Scope) -> int | None:
    """Return when the first record was sent, if those before it were deleted and may count."""
    if first is None or not 0 < beginning == first.offset or first.timestamp_ms <= scope.from_ms:
        return None
    return first.timestamp_ms


def _take_findings(
    reader: Reader, database: Database, scope: Scope, settings: Settings, at: TopicPartition
) -> int:
    """Store the findings that contradict a request of the pool, whenever they were told."""
    refused = 0
    for message in Retained(reader).whole([at]):
        try:
            finding = read_finding(message)
        except RecordError:
            refused += 1
            continue
        if finding.kv_pool == scope.kv_pool and finding.rule.startswith(CONTRADICTIONS):
            with database.write() as connection:
                record_findings(connection, [finding], settings.incidents, now_ms=0)
    return refused
