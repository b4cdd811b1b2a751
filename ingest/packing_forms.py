"""The two forms a packer writes: sequences sealed under a ring, everything else in the clear."""

from collections.abc import Callable, Sequence
from typing import Generic

from detector.errors import RecordError
from ingest.envelope import Entry, entry, pack_entries
from ingest.record_batches import BATCH_OF, Clear, clear_entry, pack_clear_entries
from ingest.record_headers import EventTimes
from ingest.schema import MAJOR, check
from ingest.schema_batches import SequenceBatch
from ingest.schema_records import EngineEvent, RequestRow, RuntimeSample, SequenceRecord
from ingest.sealing import KeyRing


class SealedForm:
    """Sequences in sealed batches, under the ring that `ring` gives at the time."""

    schema = f"{SequenceBatch.kind_name}/{MAJOR}"

    def __init__(self, ring: Callable[[], KeyRing]) -> None:
        self._ring = ring

    def entry(self, record: SequenceRecord) -> Entry:
        """Check and split a record; one without a key id takes the current one."""
        check(record)
        ring = self._ring()
        made = entry(record, ring.key_id)
        if made.key_id not in ring.key_ids:
            raise RecordError("unknown_key", "the record was hashed under a secret not held here")
        return made

    def times(self, record: SequenceRecord) -> EventTimes:
        """Return when the request came and when its last token did."""
        return EventTimes(record.started_at_ms, record.ended_at_ms)

    def pack(self, entries: Sequence[Entry]) -> bytes:
        """Seal a batch."""
        return pack_entries(entries, self._ring())


class ClearForm(Generic[Clear]):
    """Samples, events or rows in batches of their kind."""

    def __init__(self, kind: type[Clear]) -> None:
        self._kind: type[Clear] = kind

    @property
    def schema(self) -> str:
        """Schema header of a batch."""
        return f"{BATCH_OF[self._kind].kind_name}/{MAJOR}"

    def entry(self, record: Clear) -> Entry:
        """Check and encode a record."""
        return clear_entry(record)

    def times(self, record: Clear) -> EventTimes:
        """Return when it was sampled, happened, or began and ended."""
        return times_of(record)

    def pack(self, entries: Sequence[Entry]) -> bytes:
        """Pack a batch."""
        return pack_clear_entries(self._kind, entries)


def times_of(record: RuntimeSample | EngineEvent | RequestRow) -> EventTimes:
    """Return the event times of a record without tokens."""
    if isinstance(record, RuntimeSample):
        return EventTimes(record.sampled_at_ms, record.sampled_at_ms)
    if isinstance(record, EngineEvent):
        return EventTimes(record.at_ms, record.at_ms)
    started, ended = record.started_at_ms, record.ended_at_ms
    return EventTimes(started, started if ended is None else max(started, ended))
