"""What one worker tells the others about responses, and what it finds in what they tell; no I/O.

Each response's sketch goes to every partition that is the range of one of its bands. The owner of a
partition judges whatever meets in it, and notes there how far its findings have been sent.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import msgspec

from detector.errors import RecordError
from detector.finding import Finding
from detector.index.band_ranges import BandRanges
from detector.index.response_sketch import ResponseSketch, SketchKey
from detector.index.showings import ranges_of
from detector.match.across_pools import AcrossPools
from detector.match.confidence import thresholds
from detector.rules.across_pools import copy_finding
from detector.settings import DetectionSettings
from detector.streaming.intake import RingNow
from ingest.band_records import MAX_SKETCHES, BandsTold, decode, encode
from ingest.broker import BrokerRecord, Message
from ingest.record_headers import EventTimes, headers

_CONTENT_TYPE: Final = "application/vnd.bleedwatch.bands"
_SCHEMA: Final = "bands/1"

BANDS_REFUSED: Final = ("seal_broken",)
"""Why a record is refused, beside the reasons of the other exchange."""


@dataclass(slots=True)
class _Owned:
    """A range of this worker; what it finds waits until it is known what was sent before."""

    caught_up_at: int
    is_cut: bool
    """True where older records are gone: nobody knows what the first ones left have met."""
    read: int = 0
    known_from_ms: int | None = None
    sent_upto: int = 0
    waiting: list[tuple[int, Finding, SketchKey]] = field(default_factory=list)


class BandsExchange:
    """Turns sketches into messages, and records of the others into findings.

    `ranges` is the number of partitions of the topic. Never called concurrently, and by the thread
    that runs the detectors.
    """

    def __init__(
        self,
        settings: DetectionSettings,
        *,
        ring: RingNow,
        ranges: int,
        topic: str,
        memory_bytes: int,
    ) -> None:
        self._settings = settings
        self._ring = ring
        self._ranges = ranges
        self.topic = topic
        keep_ms = settings.window.keep_ms
        self.known = BandRanges(keep_ms=keep_ms, memory_bytes=memory_bytes)
        self._judge = AcrossPools(
            settings.copies,
            settings.filter,
            ranges=self.known,
            window_ms=settings.window.length_ms,
        )
        self._owned: dict[int, _Owned] = {}
        self._reported: dict[str, int] = {}
        self._sent: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self.bad_records: defaultdict[str, int] = defaultdict(int)

    def own(self, partition: int, *, begin: int, end: int) -> None:
        """Become the owner of a range: its records come from `begin`, the first one kept.

        Below `end`, where the topic ends now, lies what the owner before may have told already.
        """
        self._owned[partition] = _Owned(end, is_cut=begin > 0)
        self.known.own(partition)

    def disown(self, partition: int) -> None:
        """Forget a range; its next owner reads it again and tells what was not sent."""
        owned = self._owned.pop(partition, None)
        self.known.disown(partition)
        for marks in self._sent.values():
            marks.pop(partition, None)
        if owned is not None:
            self._judge.forget(frozenset(key for _, _, key in owned.waiting))
            for _, finding, _ in owned.waiting:
                self._reported.pop(finding.id, None)

    def take(self, record: BrokerRecord) -> None:
        """Take one record, in offset order; a bad one is counted, never raised."""
        owned = self._owned.get(record.partition)
        if owned is None:
            return
        try:
            told = decode(
                record.value, ring=self._ring(), partition=record.partition, ranges=self._ranges
            )
        except RecordError as error:
            self.bad_records[error.reason] += 1
        else:
            owned.sent_upto = max(owned.sent_upto, told.sent_upto)
            for sketch in told.sketches:
                self._meet(owned, record, sketch)
        owned.read = record.offset + 1

    def _meet(self, owned: _Owned, record: BrokerRecord, sketch: ResponseSketch) -> None:
        if not self.known.add(record.partition, sketch):
            return
        now_ms = self.known.now_ms or sketch.ended_at_ms
        if owned.known_from_ms is None:
            behind_ms = self._settings.window.keep_ms if owned.is_cut else 0
            owned.known_from_ms = sketch.started_at_ms + behind_ms
        rebuilds = record.offset < owned.caught_up_at
        is_blind = rebuilds and sketch.started_at_ms < owned.known_from_ms
        for copy in self._judge.judge(sketch):
            limits = thresholds(self._settings.filter, live_shingles=0, learning=copy.sink.learning)
            finding = copy_finding(copy, limits, now_ms=now_ms)
            if finding is not None and self._is_news(finding, now_ms) and not is_blind:
                owned.waiting.append((record.offset, finding, copy.sink.key))

    def _is_news(self, finding: Finding, now_ms: int) -> bool:
        """True for a finding that no range of this worker has made within the window."""
        expired_ms = now_ms - self._settings.window.keep_ms
        while self._reported and next(iter(self._reported.values())) < expired_ms:
            del self._reported[next(iter(self._reported))]
        if finding.id in self._reported:
            return False
        self._reported[finding.id] = now_ms
        return True

    def findings(self, caller: int) -> list[Finding]:
        """Return what is new, once it is known what was sent before by another owner.

        They go out with the outcome of the partition `caller`; its next call finds them sent.
        """
        found: list[Finding] = []
        for partition, owned in self._owned.items():
            if not owned.waiting or owned.read < owned.caught_up_at:
                continue
            told = [one for offset, one, _ in owned.waiting if offset >= owned.sent_upto]
            owned.waiting.clear()
            if told:
                found += told
                self._sent[caller][partition] = owned.read
        return found

    def messages(self, caller: int, sketches: Iterable[ResponseSketch]) -> list[Message]:
        """Return what there is to tell: first how far findings are sent, then the sketches.

        Call it before `findings`: what the last outcome of `caller` carried has been acknowledged.
        """
        marks = self._sent.pop(caller, {})
        sent = [self._message(at, BandsTold(sent_upto=upto)) for at, upto in marks.items()]
        return [*sent, *self._shown(sketches)]

    def _shown(self, sketches: Iterable[ResponseSketch]) -> Iterator[Message]:
        by_range: defaultdict[int, list[ResponseSketch]] = defaultdict(list)
        for sketch in sketches:
            tags = sketch.band_tags()
            ranges = ranges_of(tags, self._ranges)
            for partition in sorted(set(ranges.tolist())):
                mine = tags[ranges == partition].astype("<i8").tobytes()
                by_range[partition].append(msgspec.structs.replace(sketch, bands=mine))
        for partition, told in by_range.items():
            for at in range(0, len(told), MAX_SKETCHES):
                yield self._message(partition, BandsTold(tuple(told[at : at + MAX_SKETCHES])))

    def _message(self, partition: int, told: BandsTold) -> Message:
        value = encode(told, ring=self._ring(), partition=partition, ranges=self._ranges)
        newest_ms = max((one.ended_at_ms for one in told.sketches), default=self.known.now_ms or 0)
        oldest_ms = min((one.started_at_ms for one in told.sketches), default=newest_ms)
        times = EventTimes(oldest_ms, newest_ms)
        return Message(self.topic, value, None, headers(_CONTENT_TYPE, _SCHEMA, times), partition)
