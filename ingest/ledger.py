"""Where a worker stands in the partitions it holds: what is read, finished, and still warming up.

The ledger alone decides what may be committed: the offsets that the handler called done, never an
acknowledgement that a stream library made by itself. Times are the seconds of its clock.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from detector.errors import StreamError
from ingest.broker import BrokerRecord, TopicPartition
from ingest.stream import Clock


@dataclass(slots=True)
class Input:
    """One topic of a partition. Offsets below `next` have been given to the handler."""

    next: int
    committed: int | None
    """What was committed when the partition was assigned, None if nothing ever was."""
    done: int | None
    """Everything below is finished with; what may be committed."""
    missing: int = 0
    """Offsets that were never delivered: deleted by retention, or marks of transactions."""

    @property
    def warm(self) -> bool:
        """True once everything below the committed offset has been read again."""
        return self.committed is None or self.next >= self.committed


@dataclass(slots=True, eq=False)
class Held:
    """One partition, all its inputs."""

    inputs: dict[str, Input]
    since: float
    """When it was assigned."""
    heard: float
    """When a record last came, or the handler was last told that none does."""
    warm: bool = False
    reread: int = 0
    """Records that were read again to rebuild the window."""


class Ledger:
    """The partitions of one worker. `topics` are the inputs, all of the same partitions."""

    def __init__(self, topics: Sequence[str], clock: Clock = time.monotonic) -> None:
        self.topics = tuple(topics)
        self._clock = clock
        self._held: dict[int, Held] = {}

    def __iter__(self) -> Iterator[tuple[int, Held]]:
        """Yield the partitions that are held; the ledger may change meanwhile."""
        return iter(list(self._held.items()))

    def get(self, partition: int) -> Held | None:
        """Return a partition if it is held."""
        return self._held.get(partition)

    def place(
        self,
        partition: int,
        positions: Mapping[TopicPartition, int],
        committed: Mapping[TopicPartition, int],
    ) -> None:
        """Hold a partition from now on; its inputs are read from `positions`."""
        now = self._clock()
        inputs = {
            at.topic: Input(next=offset, committed=committed.get(at), done=committed.get(at))
            for at, offset in positions.items()
        }
        self._held[partition] = Held(inputs, since=now, heard=now)

    def drop(self, partition: int) -> None:
        """Hold a partition no longer."""
        self._held.pop(partition, None)

    def continues(self, partition: int, committed: Mapping[TopicPartition, int]) -> bool:
        """Return whether what is held of a partition is still the state to go on from.

        It is not when others have finished more of it than we have.
        """
        held = self._held.get(partition)
        return held is not None and all(
            committed.get(TopicPartition(topic, partition), 0) <= (one.done or 0)
            for topic, one in held.inputs.items()
        )

    def positions(self, partition: int) -> dict[TopicPartition, int]:
        """Return the offset of each input of a held partition that is to be read next."""
        inputs = self._held[partition].inputs
        return {TopicPartition(topic, partition): one.next for topic, one in inputs.items()}

    def accept(self, record: BrokerRecord) -> bool:
        """Note a record that goes to the handler; False if it has been there already.

        Raises StreamError for a partition that is not held: its window was never rebuilt.
        """
        held = self._held.get(record.partition)
        if held is None:
            raise StreamError(
                "a record came for a partition that was never placed",
                where=f"{record.topic} partition {record.partition} offset {record.offset}",
                hint="restart the worker; if it happens again, report it",
            )
        one = held.inputs[record.topic]
        if record.offset < one.next:
            return False
        one.missing += record.offset - one.next
        one.next = record.offset + 1
        if one.committed is not None and record.offset < one.committed:
            held.reread += 1
        held.heard = self._clock()
        return True

    def finish(self, held: Held, partition: int, done: Mapping[TopicPartition, int]) -> None:
        """Note what the handler has finished; ignored if the partition has been lost meanwhile.

        Raises StreamError for offsets that were never read: committing them would skip records.
        """
        if self._held.get(partition) is not held:
            return
        for at, offset in done.items():
            one = held.inputs[at.topic]
            if offset > one.next or at.partition != partition:
                raise StreamError(
                    f"the handler calls offset {offset} done, but {one.next} was never read",
                    where=f"{at.topic} partition {at.partition}",
                    hint="nothing was committed; report it",
                )
            if one.done is None or offset > one.done:
                one.done = offset

    def finished(self) -> dict[TopicPartition, int]:
        """Return what may be committed: for each input, the offset below which all is done."""
        return {
            TopicPartition(topic, partition): one.done
            for partition, held in self
            for topic, one in held.inputs.items()
            if one.done is not None
        }

    def newly_warm(self) -> list[tuple[int, float, int]]:
        """Return partition, seconds and records of each window rebuilt since the last call."""
        told = []
        for partition, held in self:
            if not held.warm and all(one.warm for one in held.inputs.values()):
                held.warm = True
                told.append((partition, self._clock() - held.since, held.reread))
        return told
