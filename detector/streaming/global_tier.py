"""A handler whose worker tells all others what its responses are like; detection stays inside."""

from collections.abc import Mapping, Sequence

from detector.config.root import Settings
from detector.match.response_sketches import ResponseSketches
from detector.sketch.tag_keys import TagKeys
from detector.streaming.bands_exchange import BandsExchange
from detector.streaming.bands_feed import BandsFeed
from detector.streaming.handler import StreamHandler
from detector.streaming.intake import RingNow
from ingest.broker import BrokerRecord, Reader, TopicPartition
from ingest.stream import Handler, Outcome
from ingest.topics import topic_names


class GlobalTier:
    """What one process needs: `sketches` for its detectors, then a handler around its handler."""

    def __init__(
        self, settings: Settings, tag_keys: TagKeys, *, ring: RingNow, ranges: int
    ) -> None:
        """`ranges` is the number of partitions that the topic really has."""
        self.sketches = ResponseSketches(settings.detection.copies, tag_keys)
        self.exchange = BandsExchange(
            settings.detection,
            ring=ring,
            ranges=ranges,
            topic=topic_names(settings.kafka.topic_prefix).bands,
            memory_bytes=settings.stream.global_tier_memory_bytes,
        )

    def around(self, handler: Handler, core: StreamHandler, reader: Reader) -> Handler:
        """Return a handler around `handler`; `core` is made with `sketches`, `reader` is its own.

        All detectors of the group must number parties alike.
        """
        return GlobalTierHandler(
            handler,
            core,
            sketches=self.sketches,
            exchange=self.exchange,
            feed=BandsFeed(reader, self.exchange),
        )


class GlobalTierHandler:
    """Passes every call to `handler`, which ends in `core`; that must make `sketches`.

    What others have told is judged before a batch. Sketches and findings go out with the messages
    of the batch, so they are acknowledged before it is committed. The range of the same number
    comes and goes with a partition.
    """

    def __init__(
        self,
        handler: Handler,
        core: StreamHandler,
        *,
        sketches: ResponseSketches,
        exchange: BandsExchange,
        feed: BandsFeed,
    ) -> None:
        self._handler = handler
        self._core = core
        self._sketches = sketches
        self._exchange = exchange
        self._feed = feed

    def warm_from_ms(self, newest: BrokerRecord) -> int:
        """See `Handler`."""
        return self._handler.warm_from_ms(newest)

    def assign(self, partition: int, committed: Mapping[TopicPartition, int]) -> None:
        """See `Handler`; the range is read from its beginning as records come."""
        self._feed.own(partition)
        self._handler.assign(partition, committed)

    def revoke(self, partition: int) -> None:
        """See `Handler`."""
        self._feed.disown(partition)
        self._handler.revoke(partition)

    def take(self, partition: int, records: Sequence[BrokerRecord]) -> Outcome:
        """See `Handler`."""
        self._feed.poll()
        return self._with_told(partition, self._handler.take(partition, records))

    def idle(self, partition: int) -> Outcome:
        """See `Handler`."""
        self._feed.poll()
        return self._with_told(partition, self._handler.idle(partition))

    def _with_told(self, partition: int, outcome: Outcome) -> Outcome:
        """Add what there is to tell; while a window is rebuilt its sketches were told before."""
        made = self._sketches.take()
        if self._core.held[partition].window.warming:
            made = []
        told = self._exchange.messages(partition, made)
        found = self._core.findings_of(self._exchange.findings(partition))
        return outcome._replace(messages=[*outcome.messages, *told, *found])
