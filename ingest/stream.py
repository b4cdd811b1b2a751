"""What a stream runner (Faust, or the loop in memory) asks of the detection, and gives it.

The runner owns positions, acknowledgements and sending; the handler owns decoding and detection and
does no I/O. Partition p of the three input topics is one unit: everything about a KV pool is in it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from ingest.broker import BrokerRecord, Message, TopicPartition


class Outcome(NamedTuple):
    """What came of a batch of records."""

    messages: Sequence[Message]
    """To be sent and acknowledged by the broker before anything is committed."""

    done: Mapping[TopicPartition, int]
    """For each input, the offset below which every record is finished with: what may be committed.

    Records that wait for their turn in event time are not done.
    """


class Handler(Protocol):
    """The detection of one process. Its methods are never called concurrently."""

    def warm_from_ms(self, newest: BrokerRecord) -> int:
        """Return the event time from which a window must be rebuilt to go on after `newest`.

        `newest` is the last finished record, the one before the committed offset.
        """
        ...

    def assign(self, partition: int, committed: Mapping[TopicPartition, int]) -> None:
        """Start a partition with empty state; records below these offsets only rebuild its window.

        An input that has never been committed is missing from the mapping.
        """
        ...

    def revoke(self, partition: int) -> None:
        """Forget a partition's state; what was not done comes again elsewhere."""
        ...

    def take(self, partition: int, records: Sequence[BrokerRecord]) -> Outcome:
        """Take records, each input in offset order, and return what is to be sent and what is done.

        Never raises for a bad record: it becomes a dead letter. Raises TooManyDeadLettersError when
        the input is bad beyond the limit: the process must end without committing.
        """
        ...

    def idle(self, partition: int) -> Outcome:
        """Nothing has come for the idle time: finish what waits for its turn in event time.

        Called again after every idle time without a record.
        """
        ...


Clock = Callable[[], float]
"""Seconds that never go back, as time.monotonic gives."""
