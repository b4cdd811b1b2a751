"""Composition of `audit`: events from audit files or from the topic, and the trail they make."""

import heapq
import operator
import time
from collections.abc import Iterable, Iterator
from typing import Final

from detector.errors import BrokerError
from detector.ledger.trail import Trail
from ingest.audit_log import AuditLog
from ingest.broker import Reader, TopicPartition
from ingest.coverage import Coverage
from ingest.opening import open_records
from ingest.schema_records import EngineEvent
from ingest.sources.lines import Lines, open_lines
from ingest.stream import Clock

POLL_S: Final = 0.5

SILENT_S: Final = 30.0
"""How long a broker that sends nothing is waited for: three times what a busy one needs."""


def read_files(paths: Iterable[str], trail: Trail) -> Coverage:
    """Give the events of files to a trail, merged by time; return what could not be read.

    Raises InputError for a file that cannot be read.
    """
    coverage = Coverage()
    opened = [open_lines(path, coverage=coverage) for path in paths]
    try:
        for event in heapq.merge(
            *(_events(lines, coverage) for lines in opened), key=operator.attrgetter("at_ms")
        ):
            trail.take(event)
    finally:
        for lines in opened:
            lines.close()
    return coverage


def read_topic(
    reader: Reader, topic: str, trail: Trail, *, clock: Clock = time.monotonic
) -> Coverage:
    """Give what lies in the topic of engine events to a trail; return what could not be read.

    Raises BrokerError if there is no such topic, or if it is not read to its end.
    """
    coverage = Coverage()
    places = [TopicPartition(topic, number) for number in range(reader.partitions(topic))]
    begins = {at: reader.beginning(at) for at in places}
    left = {at: end for at in places if (end := reader.end(at)) > begins[at]}
    reader.assign({at: begins[at] for at in left})
    heard_s = clock()
    while left:
        for message in reader.poll(POLL_S):
            heard_s = clock()
            at = TopicPartition(message.topic, message.partition)
            if message.offset >= left.get(at, 0):
                left.pop(at, None)
                continue
            opened = open_records(EngineEvent, message)
            for error in opened.rejected:
                coverage.broken(error.reason)
            for event in opened.records:
                trail.take(event)
            if message.offset + 1 >= left[at]:
                del left[at]
        if clock() - heard_s >= SILENT_S:
            raise BrokerError(
                f"{len(left)} partitions were not read to their end within {SILENT_S:.0f} s",
                where=f"topic {topic}",
                hint="look at the load of the cluster and try again",
            )
    return coverage


def _events(lines: Lines, coverage: Coverage) -> Iterator[EngineEvent]:
    log = AuditLog(coverage)
    for _, line in lines:
        event = log.event(line)
        if event is not None:
            yield event
