"""A small handler with all that the runners care for: a hold, a window in event time, a rebuild.

A record is the text `event_ms key`. Whoever shows a key within the window of somebody who has shown
it before makes a pair, which is a message on the topic of results; ids are deterministic. Text that
does not read so is a dead letter. Two runs over the same records find the same pairs, or one of
them has lost something.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ingest.broker import BrokerRecord, Message, TopicPartition
from ingest.stream import Outcome

HOLD_MS = 200
WINDOW_MS = 300_000
MARGIN_MS = 60_000


@dataclass
class _Partition:
    committed: Mapping[TopicPartition, int]
    waiting: list[tuple[int, str, int, str]] = field(default_factory=list)
    next: dict[TopicPartition, int] = field(default_factory=dict)
    shown: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    newest_ms: int = 0


class PairHandler:
    """See the module. `note` is told of each call, and what it was about."""

    def __init__(self, results: str, note: Callable[..., None] = lambda **_words: None) -> None:
        self._results = results
        self._note = note
        self._partitions: dict[int, _Partition] = {}

    def warm_from_ms(self, newest: BrokerRecord) -> int:
        return int((newest.value or b"0").split()[0]) - WINDOW_MS - MARGIN_MS

    def assign(self, partition: int, committed: Mapping[TopicPartition, int]) -> None:
        assert partition not in self._partitions
        self._partitions[partition] = _Partition(dict(committed))
        self._note(event="assign", partition=partition, committed=sorted(committed.values()))

    def revoke(self, partition: int) -> None:
        del self._partitions[partition]
        self._note(event="revoke", partition=partition)

    def take(self, partition: int, records: Sequence[BrokerRecord]) -> Outcome:
        own = self._partitions[partition]
        messages: list[Message] = []
        for record in records:
            at = TopicPartition(record.topic, record.partition)
            own.next[at] = record.offset + 1
            try:
                event, key = (record.value or b"").decode().split()
                if key == "fatal":
                    raise RuntimeError(key)
                heapq.heappush(own.waiting, (int(event), record.topic, record.offset, key))
                own.newest_ms = max(own.newest_ms, int(event))
            except ValueError:
                messages.append(self._dead_letter(record))
        messages += self._release(partition, own, own.newest_ms - HOLD_MS)
        again = sum(
            r.offset < own.committed.get(TopicPartition(r.topic, partition), 0) for r in records
        )
        self._note(event="take", partition=partition, records=len(records), again=again)
        if messages:
            upto = max(record.offset for record in records) + 1
            self._note(event="pending", partition=partition, messages=len(messages), upto=upto)
        return Outcome(messages, self._done(partition, own))

    def idle(self, partition: int) -> Outcome:
        own = self._partitions[partition]
        messages = self._release(partition, own, own.newest_ms)
        return Outcome(messages, self._done(partition, own))

    def _release(self, partition: int, own: _Partition, until_ms: int) -> list[Message]:
        messages: list[Message] = []
        while own.waiting and own.waiting[0][0] <= until_ms:
            event, topic, offset, key = heapq.heappop(own.waiting)
            before = [at for at in own.shown[key] if event - at <= WINDOW_MS]
            if event in before:
                continue
            own.shown[key] = [*before, event]
            if offset >= own.committed.get(TopicPartition(topic, partition), 0):
                found = [f"{partition} {key} {at} {event}".encode() for at in before]
                messages += [Message(self._results, one, key=key.encode()) for one in found]
        return messages

    def _done(self, partition: int, own: _Partition) -> dict[TopicPartition, int]:
        done = dict(own.next)
        for _, topic, offset, _ in own.waiting:
            at = TopicPartition(topic, partition)
            done[at] = min(done[at], offset)
        return done

    def _dead_letter(self, record: BrokerRecord) -> Message:
        return Message(self._results, f"dead {record.topic} {record.offset}".encode())
