"""One partition in memory: records by offset, the newest up to a number of bytes."""

from collections.abc import Sequence

from ingest.broker import BrokerRecord

_SLACK = 8
"""A trim takes an eighth more than it must, so that not every record pays for moving the rest."""


class MemoryLog:
    """The records of one partition, oldest first. Not safe for threads: the broker locks."""

    def __init__(self, keep_bytes: int) -> None:
        self.first = 0
        self._keep_bytes = keep_bytes
        self._bytes = 0
        self._records: list[tuple[BrokerRecord, int]] = []

    @property
    def end(self) -> int:
        """The offset that the next record gets."""
        return self.first + len(self._records)

    def append(self, record: BrokerRecord, size: int) -> None:
        """Store the record with offset `end`; older ones go when it does not fit, never itself."""
        self._records.append((record, size))
        self._bytes += size
        if self._bytes > self._keep_bytes:
            self._trim()

    def since(self, offset: int, most: int) -> Sequence[BrokerRecord]:
        """Return up to `most` records from `offset`, or from the first that is kept."""
        start = max(0, offset - self.first)
        return [record for record, _ in self._records[start : start + most]]

    def offset_at(self, timestamp_ms: int) -> int | None:
        """Return the first offset with this time-stamp or a later one."""
        found = (r.offset for r, _ in self._records if r.timestamp_ms >= timestamp_ms)
        return next(found, None)

    def _trim(self) -> None:
        target = self._keep_bytes - self._keep_bytes // _SLACK
        drop = 0
        while self._bytes > target and drop < len(self._records) - 1:
            self._bytes -= self._records[drop][1]
            drop += 1
        del self._records[:drop]
        self.first += drop
