"""What a runner over a broker in memory says of itself: it has all, and rebuilds nothing."""

from ingest.broker import Reader, TopicPartition


class LocalRunner:
    """See `monitor.Runner`; the reader is this one's own."""

    assigned = True

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def warming(self) -> list[int]:
        """Return nothing: a broker in memory is as old as the process."""
        return []

    def end_of(self, at: TopicPartition) -> int | None:
        """Return the offset that the next record of an input gets."""
        return self._reader.end(at)
