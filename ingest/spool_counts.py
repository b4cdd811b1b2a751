"""What a spool holds and has lost: counts and times, exact to the message."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from ingest.broker import Message
from ingest.partitioning import message_bytes
from ingest.record_headers import EventTimes, event_times


class SpoolCounts(msgspec.Struct, frozen=True):
    """What a spool holds, and what it has done since it was opened."""

    messages: int
    bytes: int
    spooled: int
    replayed: int
    dropped: dict[str, int]
    """Messages given up for room, by topic."""
    dropped_bytes: int
    dropped_times: EventTimes | None
    """Event time of what was given up: the oldest start and the newest end, ms."""
    refused: int
    """Messages that found no room; their senders have kept them."""
    cut_bytes: int
    """Half-written or damaged ends of segments, cut off when the spool was opened."""


class Dropped:
    """Counts the messages that were given up for room."""

    def __init__(self) -> None:
        self.messages: Counter[str] = Counter()
        """By topic."""
        self.bytes = 0
        self.times: EventTimes | None = None
        """Event time of all of them: the oldest start and the newest end, ms."""

    def add(self, messages: Iterable[Message]) -> None:
        """Count messages that nobody will ever see."""
        for message in messages:
            self.messages[message.topic] += 1
            self.bytes += message_bytes(message)
            times, before = event_times(message.headers), self.times
            if times is not None:
                self.times = EventTimes(
                    min(times.oldest, before.oldest) if before else times.oldest,
                    max(times.newest, before.newest) if before else times.newest,
                )
