"""Which records of one input are finished: only those whose every sequence has been observed."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from detector.model import Sequence as TokenSequence
from ingest.schema_records import SequenceRecord


@dataclass(slots=True, eq=False)
class _Open:
    """One record of the topic; `waiting` of its sequences have not been observed yet."""

    offset: int
    taken_at: float
    waiting: int


class Unfinished:
    """The records that were taken and are not finished, in offset order.

    Sequences are told apart by identity: whoever takes them holds them until they are observed.
    """

    def __init__(self) -> None:
        self._open: deque[_Open] = deque()
        self._of: dict[int, tuple[SequenceRecord, _Open]] = {}
        self.done: int | None = None
        """Every record below this offset is finished; None before the first that is."""

    def __len__(self) -> int:
        return len(self._open)

    @property
    def oldest_taken_at(self) -> float | None:
        """When the oldest unfinished record was taken, None without one."""
        return self._open[0].taken_at if self._open else None

    def take(
        self,
        offset: int,
        sequences: Sequence[tuple[TokenSequence, SequenceRecord]],
        *,
        now: float,
        counts: bool,
    ) -> None:
        """Note a record before its sequences are ordered; offsets rise. `now` is any clock's.

        One that does not count was finished long ago: only its sequences are known here.
        """
        entry = _Open(offset, now, len(sequences))
        for sequence, record in sequences:
            self._of[id(sequence)] = (record, entry)
        if counts:
            self._open.append(entry)
            self._settle()

    def observed(self, sequence: TokenSequence) -> SequenceRecord:
        """Note that a sequence has been observed; return the record it came as."""
        record, entry = self._of.pop(id(sequence))
        entry.waiting -= 1
        self._settle()
        return record

    def _settle(self) -> None:
        while self._open and not self._open[0].waiting:
            self.done = self._open.popleft().offset + 1
