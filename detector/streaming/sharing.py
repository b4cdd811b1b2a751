"""A handler whose worker shares what is common with all others; detection is the inner one's."""

from collections.abc import Mapping, Sequence

import numpy as np

from detector.index.shared_memory import SharedMemory
from detector.index.shingle_range import ShingleRange
from detector.index.showings import Showings, Taint
from detector.index.tenant_table import mark_of
from detector.settings import CommonnessSettings
from detector.sketch.tag_keys import TagKeys
from detector.streaming.commonness_feed import CommonnessFeed
from detector.streaming.exchange import Exchange
from ingest.broker import BrokerRecord, TopicPartition
from ingest.stream import Handler, Outcome

READ_UP_S = 5.0
"""How long an assignment waits until what others have told is read, which it usually is already.
Partitions wait one after the other, and a late finding is worse than a false one."""


def compile_kernels(settings: CommonnessSettings, keys: TagKeys) -> None:
    """Run what sharing runs once: compiling holds the interpreter, and heartbeats would wait."""
    memory = SharedMemory(settings, keys)
    shown = Showings(np.ones(2, np.int64), np.array([mark_of(1, 0), mark_of(2, 0)]))
    own = ShingleRange(
        horizon_ms=settings.horizon_ms,
        refresh_ms=settings.horizon_ms,
        memory_bytes=settings.range_memory_bytes,
        tainted=memory.tainted,
    )
    memory.merge(own.learn(shown, now_ms=0), now_ms=0)
    memory.merge_taint(Taint(memory.tagged(shown.tags), 1, 2, since_ms=0, at_ms=0))


class SharingHandler:
    """Passes every call to `handler`, which must use the exchange's memory.

    What others have told is taken before a batch, what this worker has to tell goes out with the
    messages of the batch, so that it is acknowledged before the batch is committed. The range of
    the same number comes and goes with a partition.
    """

    def __init__(self, handler: Handler, exchange: Exchange, feed: CommonnessFeed) -> None:
        self._handler = handler
        self._exchange = exchange
        self._feed = feed

    def warm_from_ms(self, newest: BrokerRecord) -> int:
        """See `Handler`."""
        return self._handler.warm_from_ms(newest)

    def assign(self, partition: int, committed: Mapping[TopicPartition, int]) -> None:
        """See `Handler`; what the others have told by now is read before."""
        self._feed.read_up(timeout_s=READ_UP_S)
        self._feed.own(partition)
        self._handler.assign(partition, committed)

    def revoke(self, partition: int) -> None:
        """See `Handler`."""
        self._feed.disown(partition)
        self._handler.revoke(partition)

    def take(self, partition: int, records: Sequence[BrokerRecord]) -> Outcome:
        """See `Handler`."""
        self._feed.poll()
        return self._with_told(self._handler.take(partition, records))

    def idle(self, partition: int) -> Outcome:
        """See `Handler`."""
        self._feed.poll()
        return self._with_told(self._handler.idle(partition))

    def _with_told(self, outcome: Outcome) -> Outcome:
        return outcome._replace(messages=[*outcome.messages, *self._exchange.messages()])
