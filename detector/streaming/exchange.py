"""What one worker tells the others about shingles and what it makes of what they tell; no I/O.

Three things travel. First showings go to `shingles`, into the partition that is their range. The
owner of a range answers on `commonness` with the marks of what several parties have shown, and
whoever finds a bleed tells its tainted shingles there. Every worker reads all of `commonness`.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from detector.errors import RecordError
from detector.index.selection import Sampling
from detector.index.shared_memory import SharedMemory
from detector.index.shingle_range import ShingleRange
from detector.index.showings import Showings, Taint, by_range, joined, ranges_of
from detector.settings import CommonnessSettings
from ingest.broker import BrokerRecord, Headers, Message
from ingest.commonness_records import (
    MAX_TAGS,
    SHARED,
    SHOWN,
    TAINTED,
    Told,
    decode,
    encode_showings,
    encode_taints,
    pieces,
)
from ingest.record_headers import EventTimes, headers

SHINGLES = "shingles"
COMMONNESS = "commonness"
"""Names of the two topics, after the prefix."""

REFRESH_SHARE = 2
"""A party that is heard of again after a half of the horizon is told again, or what goes on being
shown would be forgotten where it was only heard of."""

LIFETIMES = 2
"""Horizons after which a showing is forgotten for certain, as everywhere in the memory."""

REFUSED = ("malformed", "unknown_key", "wrong_range", "coarser_sample")
"""Why a record of another worker is not used: no writer of this version makes it so; it is under
another secret; its tags are in a partition that is not their range; its writer remembers less of a
text than this worker, which would take what is left out for something that nobody has shown."""

_CONTENT_TYPE = "application/vnd.bleedwatch.shingles"
_SCHEMA = "shingles/1"


@dataclass(slots=True)
class _Owned:
    """A range of this worker: its table, and what is to be told of it."""

    table: ShingleRange
    read: int = 0
    """Offset of the next record of the range that is not learned yet."""
    told: list[Showings] = field(default_factory=list)
    told_ms: int = 0
    """Event time, by the clock of who showed it, of the first of what is to be told."""


@dataclass(frozen=True, slots=True)
class RangeState:
    """One owned range, for metrics; `since_ms` is event time, None while the range is empty."""

    partition: int
    read: int
    nbytes: int
    since_ms: int | None
    early_rotations: int


class Exchange:
    """Turns what the memory has learned into messages, and records of the others into memory.

    `ranges` is the number of partitions of both topics. Never called concurrently, and by the
    thread that runs the detectors.
    """

    def __init__(
        self,
        memory: SharedMemory,
        settings: CommonnessSettings,
        *,
        key_id: str,
        sampling: Sampling,
        ranges: int,
        prefix: str,
        writer: bytes,
    ) -> None:
        """`sampling` is what the memory takes; a record of a coarser one is not learned from.

        `writer` is unique to the process, so that two owners of a range never use one key. It may
        be empty for a process that only listens.
        """
        self._memory = memory
        self._settings = settings
        self._key_id = key_id
        self._window = sampling.remembered_of
        self._ranges = ranges
        self._prefix = prefix
        self._writer = writer
        self._written = 0
        self._owned: dict[int, _Owned] = {}
        self._told_upto: defaultdict[int, int] = defaultdict(int)
        self._bad: defaultdict[str, int] = defaultdict(int)

    @property
    def shingles_topic(self) -> str:
        """The topic of first showings."""
        return f"{self._prefix}.{SHINGLES}"

    @property
    def commonness_topic(self) -> str:
        """The topic that every worker reads from its beginning."""
        return f"{self._prefix}.{COMMONNESS}"

    @property
    def bad_records(self) -> dict[str, int]:
        """Records that were not used, by reason."""
        return dict(self._bad)

    def states(self) -> list[RangeState]:
        """Return the state of every owned range."""
        return [
            RangeState(
                partition=partition,
                read=owned.read,
                nbytes=owned.table.nbytes,
                since_ms=owned.table.since_ms,
                early_rotations=owned.table.early_rotations,
            )
            for partition, owned in sorted(self._owned.items())
        ]

    def own(self, partition: int, *, end: int) -> None:
        """Become the owner of a range: its records come from the first one kept, once more.

        Read `commonness` to its end before: it says what the owner before has told already. `end`
        is where the range's topic ends now: what was told up to beyond it was told of another
        topic of that name, which somebody has deleted.
        """
        if self._told_upto[partition] > end:
            self._told_upto[partition] = 0
        self._owned[partition] = _Owned(
            ShingleRange(
                horizon_ms=self._settings.horizon_ms,
                refresh_ms=self._settings.horizon_ms // REFRESH_SHARE,
                memory_bytes=self._settings.range_memory_bytes,
                tainted=self._memory.tainted,
            )
        )

    def disown(self, partition: int) -> None:
        """Forget a range; its next owner reads it again."""
        self._owned.pop(partition, None)

    def take(self, record: BrokerRecord) -> None:
        """Take one record of either topic, in offset order; a bad one is counted, never raised."""
        try:
            told = decode(record.value, key_id=self._key_id)
            self._check(record, told)
        except RecordError as error:
            self._bad[error.reason] += 1
        else:
            self._learn(record, told)
        if record.topic == self.shingles_topic and record.partition in self._owned:
            self._owned[record.partition].read = record.offset + 1

    def _check(self, record: BrokerRecord, told: Told) -> None:
        is_shown = record.topic == self.shingles_topic
        if is_shown != (told.kind == SHOWN):
            raise RecordError("malformed", "a record about shingles is in the wrong topic")
        if is_shown and (ranges_of(told.showings.tags, self._ranges) != record.partition).any():
            raise RecordError("wrong_range", "tags are in a partition that is not their range")
        if told.window > self._window:
            raise RecordError("coarser_sample", "its writer remembers less of a text")

    def _learn(self, record: BrokerRecord, told: Told) -> None:
        at = record.partition
        if told.kind == SHOWN:
            if (owned := self._owned.get(at)) is not None:
                self._learn_range(owned, told, is_new=record.offset >= self._told_upto[at])
            return
        self._told_upto[at] = max(self._told_upto[at], told.upto)
        forgotten_ms = self._memory.now_ms - LIFETIMES * self._settings.horizon_ms
        if self._is_mine(record) or told.now_ms < forgotten_ms:
            return
        if told.kind == SHARED:
            self._memory.merge(told.showings, now_ms=told.now_ms)
        for taint in told.taints:
            self._memory.merge_taint(taint)

    def _learn_range(self, owned: _Owned, told: Told, *, is_new: bool) -> None:
        """Learn showings of an owned range; what the owner before has told is not told again."""
        fresh = owned.table.learn(told.showings, now_ms=told.now_ms)
        if is_new and len(fresh.tags):
            self._memory.merge(fresh, now_ms=told.now_ms)
            owned.told_ms = min(owned.told_ms, told.now_ms) if owned.told else told.now_ms
            owned.told.append(fresh)

    def _is_mine(self, record: BrokerRecord) -> bool:
        if not record.key or not self._writer:
            return False
        return record.key[1 : 1 + len(self._writer)] == self._writer

    def messages(self) -> list[Message]:
        """Return everything there is to tell, to be acknowledged before inputs are committed."""
        return [*self._shown(), *self._tainted(), *self._shared()]

    def _shown(self) -> Iterator[Message]:
        """Yield the first showings, each range into its own partition."""
        shown = self._memory.take_showings()
        if not len(shown.tags):
            return
        for partition, mine in by_range(shown, self._ranges):
            for piece in pieces(mine):
                value = encode_showings(
                    SHOWN, piece, key_id=self._key_id, now_ms=self._memory.now_ms,
                    window=self._window,
                )  # fmt: skip
                yield Message(self.shingles_topic, value, None, self._headers(), partition)

    def _tainted(self) -> Iterator[Message]:
        """Yield the taints, each range's into its own partition: order within a range is kept."""
        by_range: defaultdict[int, list[Taint]] = defaultdict(list)
        for taint in self._memory.take_taints():
            ranges = ranges_of(taint.tags, self._ranges)
            for partition in np.unique(ranges).tolist():
                part = taint._replace(tags=taint.tags[ranges == partition])
                by_range[partition] += _split(part)
        for partition, taints in by_range.items():
            for batch in _batches(taints):
                value = encode_taints(batch, key_id=self._key_id, now_ms=self._memory.now_ms)
                yield self._common(TAINTED, partition, value)

    def _shared(self) -> Iterator[Message]:
        """Yield what the owned ranges have to tell; the last record says up to where that is."""
        for partition, owned in self._owned.items():
            if not owned.told:
                continue
            fresh = joined(owned.told)
            owned.told.clear()
            records = list(pieces(fresh))
            for number, piece in enumerate(records, start=1):
                value = encode_showings(
                    SHARED, piece, key_id=self._key_id, now_ms=owned.told_ms,
                    upto=owned.read if number == len(records) else 0, window=self._window,
                )  # fmt: skip
                yield self._common(SHARED, partition, value)

    def _common(self, kind: bytes, partition: int, value: bytes) -> Message:
        self._written += 1
        key = kind + self._writer + self._written.to_bytes(8, "big")
        return Message(self.commonness_topic, value, key, self._headers(), partition)

    def _headers(self) -> Headers:
        now_ms = self._memory.now_ms
        return headers(_CONTENT_TYPE, _SCHEMA, EventTimes(now_ms, now_ms))


def _split(taint: Taint) -> list[Taint]:
    """Return a taint as several of at most MAX_TAGS tags each."""
    starts = range(0, len(taint.tags), MAX_TAGS)
    return [taint._replace(tags=taint.tags[at : at + MAX_TAGS]) for at in starts]


def _batches(taints: list[Taint]) -> Iterator[list[Taint]]:
    """Yield the taints in lists of at most MAX_TAGS tags; a single one never has more."""
    batch: list[Taint] = []
    count = 0
    for taint in taints:
        if batch and count + len(taint.tags) > MAX_TAGS:
            yield batch
            batch, count = [], 0
        batch.append(taint)
        count += len(taint.tags)
    if batch:
        yield batch
