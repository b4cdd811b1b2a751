"""Composition of `audit`: events from audit files or from the topic, and the trail they make."""

import heapq
import operator
import time
from collections.abc import Iterable, Iterator

from detector.ledger.trail import Trail
from ingest.audit_log import AuditLog
from ingest.broker import Reader, TopicPartition
from ingest.coverage import Coverage
from ingest.opening import open_records
from ingest.retained import Retained
from ingest.schema_records import EngineEvent
from ingest.sources.lines import Lines, open_lines
from ingest.stream import Clock


def read_files(paths: Iterable[str], trail: Trail, *, since_ms: int | None = None) -> Coverage:
    """Give the events of files to a trail, merged by time; return what could not be read.

    Those before `since_ms` are left out. Raises InputError for a file that cannot be read.
    """
    coverage = Coverage()
    opened = [open_lines(path, coverage=coverage) for path in paths]
    try:
        for event in heapq.merge(
            *(_events(lines, coverage) for lines in opened), key=operator.attrgetter("at_ms")
        ):
            if since_ms is None or event.at_ms >= since_ms:
                trail.take(event)
    finally:
        for lines in opened:
            lines.close()
    return coverage


def read_topic(
    reader: Reader,
    topic: str,
    trail: Trail,
    *,
    since_ms: int | None = None,
    ahead_ms: int = 0,
    clock: Clock = time.monotonic,
) -> Coverage:
    """Give what lies in the topic of engine events to a trail; return what could not be read.

    Events before `since_ms` are left out; what was sent before that, by clocks that may differ by
    `ahead_ms`, is not even read. Raises BrokerError if there is no such topic, or if it is not read
    to its end.
    """
    coverage = Coverage()
    places = [TopicPartition(topic, number) for number in range(reader.partitions(topic))]
    sent_from_ms = None if since_ms is None else since_ms - ahead_ms
    for message in Retained(reader, clock=clock).whole(places, sent_from_ms=sent_from_ms):
        opened = open_records(EngineEvent, message)
        for error in opened.rejected:
            coverage.broken(error.reason)
        for event in opened.records:
            if since_ms is None or event.at_ms >= since_ms:
                trail.take(event)
    return coverage


def _events(lines: Lines, coverage: Coverage) -> Iterator[EngineEvent]:
    log = AuditLog(coverage)
    for _, line in lines:
        event = log.event(line)
        if event is not None:
            yield event
