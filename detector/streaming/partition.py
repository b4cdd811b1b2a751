"""One partition: its sequences in event order, compared by a detector of their own."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from detector.finding import Finding
from detector.heartbeat import is_reserved
from detector.index.window import Sequencer
from detector.model import Sequence as TokenSequence
from detector.pipeline import Detector
from detector.streaming.runtime_watch import RuntimeWatch
from detector.streaming.unfinished import Unfinished
from ingest.request_rows import RequestRows
from ingest.schema_records import RequestRow, SequenceRecord
from ingest.schema_sequence import from_record


@dataclass(slots=True)
class Judged:
    """What came of sequences whose turn it was."""

    findings: list[Finding] = field(default_factory=list)
    rows: list[RequestRow] = field(default_factory=list)


class Partition:
    """The window of one partition. It begins warming up if something was finished before.

    While it warms up findings and rows are made, to be known, and are not returned. The first
    record that was not finished ends that, before its sequences are ordered: what waits for its
    turn then may still meet it, and a pair that is returned twice has the same id both times.
    """

    def __init__(
        self,
        detector: Detector,
        rows: RequestRows,
        *,
        sequencer: Sequencer,
        finished_below: int | None,
        runtime: RuntimeWatch,
        new_detector: Callable[[], Detector],
    ) -> None:
        """`new_detector` makes one for heartbeats, which must teach and count nothing."""
        self.detector = detector
        self._runtime = runtime
        self.sequencer = sequencer
        self.warming = finished_below is not None
        self._rows = rows
        self._finished_below = finished_below or 0
        self._next = 0
        self._unfinished = Unfinished()
        self._new_detector = new_detector
        self._heartbeats: Detector | None = None

    @property
    def done(self) -> int | None:
        """Every record below this offset is finished; None while nothing new is."""
        return self._unfinished.done

    def waited_s(self, now: float) -> float:
        """Return how long the oldest unfinished record has waited, 0.0 without one."""
        oldest = self._unfinished.oldest_taken_at
        return 0.0 if oldest is None else now - oldest

    def is_known(self, offset: int) -> bool:
        """True for a record that has been taken already."""
        return offset < self._next

    def is_finished(self, offset: int) -> bool:
        """True for a record that was finished before this partition was assigned."""
        return offset < self._finished_below

    def take(self, offset: int, records: Sequence[SequenceRecord], *, now: float) -> Judged:
        """Take what one record of the topic held and return what comes of those whose turn it is.

        Take also one that held nothing: it is finished at once. `now` is any clock's.
        """
        self._next = offset + 1
        judged = Judged()
        if self.warming and not self.is_finished(offset):
            self.warming = False
            self.detector.start_reporting()
            judged.findings += self._runtime.rebuilt()
        sequences = [(from_record(record), record) for record in records]
        self._unfinished.take(offset, sequences, now=now, counts=not self.is_finished(offset))
        for sequence, _ in sequences:
            self._observe(self.sequencer.push(sequence), judged)
        return self._told(judged)

    def drain(self) -> Judged:
        """Finish everything that waits for its turn."""
        judged = Judged()
        self._observe(self.sequencer.catch_up(), judged)
        return self._told(judged)

    def end(self) -> Judged:
        """Return the rows of requests that still wait for an answer: no input comes any more."""
        return self._told(Judged(rows=self._rows.drain()))

    def _observe(self, ready: Iterable[TokenSequence], judged: Judged) -> None:
        for sequence in ready:
            if is_reserved(sequence.tenant):
                judged.findings += map(self._dated, self._heartbeat(sequence))
                self._unfinished.observed(sequence)
                continue
            for finding in map(self._dated, self.detector.observe(sequence)):
                judged.findings.append(self._runtime.joined(finding, is_news=not self.warming))
            judged.findings += self._runtime.observed(
                sequence,
                shingles=self.detector.last_shingles,
                low_complexity=self.detector.last_low_complexity,
            )
            judged.rows += self._rows.add(self._unfinished.observed(sequence))

    def _heartbeat(self, sequence: TokenSequence) -> list[Finding]:
        if self._heartbeats is None:
            self._heartbeats = self._new_detector()
        return self._heartbeats.observe(sequence)

    def _told(self, judged: Judged) -> Judged:
        watermark_ms = self.sequencer.watermark_ms
        if watermark_ms is not None:
            judged.rows += self._rows.expire(watermark_ms)
        return Judged() if self.warming else judged

    def _dated(self, finding: Finding) -> Finding:
        """Return the finding with the newest event time known when it was made."""
        newest_ms = self.sequencer.newest_ms
        at_ms = max(finding.detected_at_ms, newest_ms or finding.detected_at_ms)
        return msgspec.structs.replace(finding, detected_at_ms=at_ms)
