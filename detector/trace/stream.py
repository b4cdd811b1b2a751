"""Traces a response in the sequences topic, by reading partitions that it assigns itself.

The clear index of a batch says whose sequences it holds: only batches of the response are opened to
find it, and only batches of its pool, which are all in one partition, to find its sources.
"""

import math
import time
from collections.abc import Iterator

from detector.config.root import Settings
from detector.errors import BrokerError, InputError, RecordError
from detector.reading import OnProgress
from detector.trace.model import Traced
from detector.trace.response import Gathering, Response, Wanted
from detector.trace.scan import Scan
from ingest.broker import BrokerRecord, Reader, TopicPartition
from ingest.envelope import read_index
from ingest.opening import open_sequences
from ingest.partitioning import partition_of
from ingest.retained import Retained
from ingest.schema import parse
from ingest.schema_records import SequenceRecord
from ingest.schema_sequence import from_record
from ingest.sealing import KeyRing
from ingest.stream import Clock


class StreamTrace:
    """One look-back over the sequences topic. Positions are its own, and nothing is committed.

    `until_s` is when, by `clock`, it ends with what it has.
    """

    def __init__(
        self,
        reader: Reader,
        ring: KeyRing,
        settings: Settings,
        *,
        topic: str,
        on_progress: OnProgress | None = None,
        until_s: float = math.inf,
        clock: Clock = time.monotonic,
    ) -> None:
        self._reader = reader
        self._ring = ring
        self._settings = settings
        self._topic = topic
        self._on_progress = on_progress
        self._retained = Retained(reader, until_s=until_s, clock=clock)
        self._unreadable = 0

    def trace(self, wanted: Wanted, *, sought_from_ms: int) -> Traced:
        """Return the probable sources of a response that was sent at `sought_from_ms` or later.

        Raises InputError when it is not there, UsageError when several are, BrokerError; whatever
        ends the search for sources early is told by `is_complete`.
        """
        response = self._response(wanted, sought_from_ms)
        self._unreadable = 0
        first = response.first
        since_ms = first.started_at_ms - self._settings.trace.since_ms
        scan = Scan(response, self._settings.detection, since_ms=since_ms)
        at = [self._partition(first.kv_pool)]
        for message in self._messages(at, since_ms, "looking for sources"):
            opened = open_sequences(message, self._ring)
            self._unreadable += len(opened.rejected)
            for record in opened.records:
                scan.add(from_record(record))
        return scan.result(is_complete=self._retained.is_complete, unreadable=self._unreadable)

    def _response(self, wanted: Wanted, sought_from_ms: int) -> Response:
        gathering = Gathering(wanted)
        if wanted.kv_pool is None:
            count = self._reader.partitions(self._topic)
            places = [TopicPartition(self._topic, at) for at in range(count)]
        else:
            places = [self._partition(wanted.kv_pool)]
        sealed: list[RecordError] = []
        for message in self._messages(places, sought_from_ms, "looking for the request"):
            if not _may_hold(gathering, message):
                continue
            opened = open_sequences(message, self._ring)
            sealed += [one for one in opened.rejected if one.reason == "unknown_key"]
            for record in opened.records:
                gathering.add(from_record(record))
        try:
            return gathering.response()
        except InputError as error:
            if sealed:
                raise InputError(sealed[0].what, where=error.where, hint=sealed[0].hint) from None
            if self._retained.is_complete:
                raise
        raise BrokerError(
            "the topic was not read to its end in time, and the request not found so far",
            where=f"topic {self._topic}",
            hint="try again; with --kv-pool only its partition is read",
        )

    def _partition(self, kv_pool: str) -> TopicPartition:
        count = self._reader.partitions(self._topic)
        return TopicPartition(self._topic, partition_of(kv_pool.encode(), count))

    def _messages(
        self, places: list[TopicPartition], since_ms: int, what: str
    ) -> Iterator[BrokerRecord]:
        """Yield what was sent since then and lies there now; ends early for want of time.

        A record is sent after what it tells has ended, by clocks that differ by so much at most.
        """
        told = self._on_progress
        return self._retained.messages(
            places,
            sent_from_ms=since_ms - self._settings.stream.ahead_ms,
            on_progress=lambda share: None if told is None else told(share, what),
        )


def _may_hold(gathering: Gathering, message: BrokerRecord) -> bool:
    """Tell by its clear index whether a message may hold a part of the request."""
    try:
        index = read_index(message.value or b"")
        records = [parse(SequenceRecord, bytes(raw)) for raw in index.records]
    except RecordError:
        return True  # another form, or broken: whoever opens it will see
    return any(gathering.is_wanted(one.tenant, one.request_id, index.kv_pool) for one in records)
