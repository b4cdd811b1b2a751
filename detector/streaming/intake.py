"""From a message of the sequences topic to its records: opened, checked against its own time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from detector.errors import RecordError
from ingest.broker import BrokerRecord
from ingest.envelope import Unpacked
from ingest.opening import open_sequences
from ingest.schema_records import EngineEvent, RuntimeSample, SequenceRecord
from ingest.sealing import KeyRing

RingNow = Callable[[], KeyRing]
"""Gives the keys of the moment: a rotation makes a new ring."""

_R = TypeVar("_R", SequenceRecord, RuntimeSample, EngineEvent)


@dataclass(slots=True)
class Intake:
    """Opens messages. `other_keys` counts sequences hashed under another secret than the current.

    Those meet their like only: under two secrets the hashes of one token differ.
    """

    ring: RingNow
    ahead_ms: int
    other_keys: int = 0

    def open(self, message: BrokerRecord) -> Unpacked[SequenceRecord]:
        """Return what a message holds; whatever is wrong with it is among `rejected`.

        Besides the reasons of `open_sequences` a sequence may be ahead_of_time: nothing ends after
        it was sent, and one wrong clock would make everything else too old to be compared.
        """
        ring = self.ring()
        opened = self.not_ahead(open_sequences(message, ring), message)
        for record in opened.records:
            self.other_keys += record.key_id not in ("", ring.key_id)
        return opened

    def not_ahead(self, opened: Unpacked[_R], message: BrokerRecord) -> Unpacked[_R]:
        """Return what a message holds without the records that are dated ahead of its sending."""
        if message.timestamp_ms <= 0:
            return opened
        latest_ms = message.timestamp_ms + self.ahead_ms
        good = tuple(one for one in opened.records if _event_ms(one) <= latest_ms)
        ahead: int = len(opened.records) - len(good)
        if not ahead:
            return opened
        lost = None if opened.lost is None else opened.lost + ahead
        return Unpacked(good, (*opened.rejected, *[self._ahead()] * ahead), lost)

    def _ahead(self) -> RecordError:
        return RecordError(
            "ahead_of_time",
            f"a record is dated more than {self.ahead_ms / 1000:g} s after it was sent",
            hint="set the clock of the engine's machine, or raise stream.ahead_ms",
        )


def _event_ms(record: SequenceRecord | RuntimeSample | EngineEvent) -> int:
    if isinstance(record, SequenceRecord):
        return record.ended_at_ms
    return record.sampled_at_ms if isinstance(record, RuntimeSample) else record.at_ms
