"""What one partition's worker could not see: told of every message, from what others counted."""

from collections import Counter
from collections.abc import Iterator

from detector.rules.blind import Lost
from detector.streaming.partition import Partition
from ingest.broker import BrokerRecord
from ingest.envelope import Unpacked
from ingest.limits import MAX_TEXT_CHARS
from ingest.schema_records import Record, SequenceRecord

UNKNOWN_KEY = "unknown_key"
UNREADABLE = "unreadable"
NO_TOKENS = "no_tokens"
OTHER_KEY = "other_key"


class Blindness:
    """Compares the counts of a window with those after the message before. For one thread."""

    def __init__(self, window: Partition) -> None:
        self._window = window
        self._before = self._counts()

    def refused(self, message: BrokerRecord, opened: Unpacked[Record]) -> Iterator[Lost]:
        """Yield what of a message could not be read; a sender with another key has its own word."""
        causes = Counter(
            UNKNOWN_KEY if error.reason == UNKNOWN_KEY else UNREADABLE for error in opened.rejected
        )
        yield from self._lost(message, "", causes)

    def judged(
        self, message: BrokerRecord, opened: Unpacked[SequenceRecord], key_id: str
    ) -> Iterator[Lost]:
        """Yield what was lost of a message of sequences once it is taken; `key_id` is current."""
        yield from self.refused(message, opened)
        for engine in dict.fromkeys(one.engine for one in opened.records):
            records = [one for one in opened.records if one.engine == engine]
            causes = Counter(
                {
                    NO_TOKENS: sum(not one.token_count for one in records),
                    OTHER_KEY: sum(one.key_id not in ("", key_id) for one in records),
                }
            )
            yield from self._lost(message, engine, causes)
        before, self._before = self._before, self._counts()
        yield from self._lost(message, "", self._before - before)

    def _counts(self) -> Counter[str]:
        order, detector = self._window.sequencer, self._window.detector
        return Counter(late=order.late, forced=order.forced, evicted=detector.evicted_sequences)

    def _lost(self, message: BrokerRecord, engine: str, causes: Counter[str]) -> Iterator[Lost]:
        """Date it by the broker, which dates a message once and for all."""
        at_ms = message.timestamp_ms
        if at_ms <= 0:
            at_ms = self._window.sequencer.newest_ms or 0
        pool = (message.key or b"").decode(errors="replace")[:MAX_TEXT_CHARS]
        for cause, count in causes.items():
            if count:
                yield Lost(pool, engine, cause, count, at_ms)
