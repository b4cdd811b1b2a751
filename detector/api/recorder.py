"""Reads findings and rows of requests, and records them with the offsets in one transaction.

Partitions are assigned by ourselves from the offsets in the store, without a consumer group. What a
transaction writes, and what it puts into the outbox, is there wholly or not at all, so a process
that is killed at any moment loses nothing and does nothing twice. Several may share a store: each
batch is taken by the first.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from detector.api.reading import heartbeat_of, read_finding, read_rows
from detector.errors import RecordError
from detector.finding import Finding
from exporters.incidents.model import Change
from exporters.incidents.settings import IncidentSettings
from exporters.store import heartbeats
from exporters.store.database import Database
from exporters.store.heartbeats import Hear
from exporters.store.offsets import Offsets, put_offsets, read_offsets
from exporters.store.recording import Announce, Recorded, record_findings, resolve_quiet
from exporters.store.request_rows import StoredRequest, put_requests
from ingest.broker import BrokerRecord, Reader, TopicPartition
from ingest.topics import TopicNames

ROWS_PER_TRANSACTION: Final = 5_000
"""Rows and findings written at once, give or take a message: other writers wait for a second."""


class Opened(NamedTuple):
    """One message, opened. `refused` are the reasons of what could not be read."""

    at: TopicPartition
    offset: int
    findings: tuple[Finding, ...] = ()
    rows: tuple[StoredRequest, ...] = ()
    refused: tuple[str, ...] = ()


class Recorder:
    """Records what comes from a reader; for one thread.

    `now_ms` is wall time. `announce` gets the changes of incidents inside the transaction that
    makes them, and `hear` of heartbeats. When the store fails, what was read is kept and written by
    the next `turn`. Without `resumes` offsets are neither looked up nor kept: the broker is as old
    as this process.
    """

    def __init__(
        self,
        database: Database,
        reader: Reader,
        *,
        topics: TopicNames,
        settings: IncidentSettings,
        announce: Announce,
        hear: Hear,
        now_ms: Callable[[], int],
        resumes: bool = True,
    ) -> None:
        self._database = database
        self._reader = reader
        self._topics = topics
        self._settings = settings
        self._announce = announce
        self._hear = hear
        self._now_ms = now_ms
        self._resumes = resumes
        self._unwritten: list[BrokerRecord] = []
        self.counts: Counter[str] = Counter()
        """Findings by what came of them (new, updated, repeated), and `requests`."""
        self.refused: Counter[tuple[str, ...]] = Counter()
        """What could not be read, by topic and reason."""
        self.positions: Offsets = {}
        """The next offset of each partition."""

    def start(self) -> None:
        """Go on where the store says, or at the first record kept.

        A topic that ends before that was made anew, and is read from its beginning. Raises
        BrokerError and StoreError.
        """
        with self._database.read() as connection:
            stored = read_offsets(connection) if self._resumes else {}
        anew: Offsets = {}
        for topic in (self._topics.findings, self._topics.requests):
            for number in range(self._reader.partitions(topic)):
                at = TopicPartition(topic, number)
                first = self._reader.beginning(at)
                known = stored.get(at)
                if known is not None and known > self._reader.end(at):
                    anew[at] = first
                # what was not read in time is gone: nothing to wait for
                self.positions[at] = first if known is None or at in anew else max(first, known)
        if anew:
            with self._database.write() as connection:
                put_offsets(connection, anew)
        self._assign()

    def turn(self, timeout_s: float) -> tuple[Change, ...]:
        """Record what has come, within the time-out, and return what it changed.

        Raises BrokerError and StoreError; the next call goes on where this one failed.
        """
        if not self._unwritten:
            self._unwritten = list(self._reader.poll(timeout_s))
        changes: list[Change] = []
        while self._unwritten:
            batch = self._next_batch()
            changes += self._record(batch)
            del self._unwritten[: len(batch)]
        return tuple(changes)

    def resolve(self) -> tuple[Change, ...]:
        """Resolve what has been quiet for long enough, and return the changes."""
        with self._database.write() as connection:
            changes = resolve_quiet(connection, self._settings, now_ms=self._now_ms())
            if changes:
                self._announce(connection, changes)
        return changes

    def lag(self) -> dict[TopicPartition, int]:
        """Return how many records of each partition are not recorded yet; raises BrokerError."""
        return {
            TopicPartition(*at): max(0, self._reader.end(TopicPartition(*at)) - offset)
            for at, offset in self.positions.items()
        }

    def _assign(self) -> None:
        self._reader.assign({TopicPartition(*at): n for at, n in self.positions.items()})

    def _next_batch(self) -> list[Opened]:
        batch: list[Opened] = []
        size = 0
        for message in self._unwritten:
            opened = self._open(message)
            batch.append(opened)
            size += len(opened.findings) + len(opened.rows)
            if size >= ROWS_PER_TRANSACTION:
                break
        return batch

    def _open(self, message: BrokerRecord) -> Opened:
        at = TopicPartition(message.topic, message.partition)
        if message.topic == self._topics.requests:
            rows, refused = read_rows(message)
            return Opened(at, message.offset, rows=rows, refused=refused)
        try:
            return Opened(at, message.offset, findings=(read_finding(message),))
        except RecordError as error:
            return Opened(at, message.offset, refused=(error.reason,))

    def _record(self, batch: Sequence[Opened]) -> tuple[Change, ...]:
        """Write a batch; what another process has written of it in the meantime is left out."""
        with self._database.write() as connection:
            stored = read_offsets(connection) if self._resumes else {}
            fresh = [one for one in batch if one.offset >= stored.get(one.at, 0)]
            put_requests(connection, (row for one in fresh for row in one.rows))
            told = [finding for one in fresh for finding in one.findings]
            beats = [beat for beat in map(heartbeat_of, told) if beat is not None]
            if beats:
                heartbeats.put(connection, beats, now_ms=self._now_ms())
                self._hear(connection, beats)
            recorded = record_findings(
                connection,
                (finding for finding in told if heartbeat_of(finding) is None),
                self._settings,
                now_ms=self._now_ms(),
            )
            if self._resumes:
                put_offsets(connection, {one.at: one.offset + 1 for one in fresh})
            if recorded.changes:
                self._announce(connection, recorded.changes)
        self.positions |= {one.at: one.offset + 1 for one in batch}
        self._count(fresh, recorded)
        return recorded.changes

    def _count(self, batch: Sequence[Opened], recorded: Recorded) -> None:
        self.counts.update(
            new=recorded.new,
            updated=recorded.updated,
            repeated=recorded.repeated,
            requests=sum(len(one.rows) for one in batch),
        )
        self.refused.update((one.at.topic, reason) for one in batch for reason in one.refused)
