"""Messages on their way into the stream without Kafka: those that came over HTTP, and our own."""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future

from detector.errors import BrokerError, RecordError
from ingest.broker import Message
from ingest.partitioning import message_bytes


class Received:
    """Holds messages until the stream takes them. Any thread may add; one follows.

    Only messages for `topics` are taken, and none larger than `most_message_bytes`.
    """

    def __init__(
        self, topics: Collection[str], *, most_bytes: int, most_message_bytes: int
    ) -> None:
        self._topics = frozenset(topics)
        self._most_bytes = most_bytes
        self._most_message_bytes = most_message_bytes
        self._changed = threading.Condition()
        self._waiting: deque[Message] = deque()
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """True while nothing more should be sent."""
        return self._bytes >= self._most_bytes

    def add(self, messages: Sequence[Message]) -> None:
        """Take messages, all or none; raises RecordError unknown_topic, too_large or empty."""
        for message in messages:
            if message.topic not in self._topics:
                raise RecordError(
                    "unknown_topic", "a message is for a topic that is not taken here"
                )
            if message_bytes(message) > self._most_message_bytes:
                raise RecordError("too_large", "a message is larger than kafka.max_message_bytes")
            if message.key is None or message.value is None:
                raise RecordError("empty", "a message has no key or no value")
        with self._changed:
            self._waiting.extend(message._replace(partition=None) for message in messages)
            self._bytes += sum(map(message_bytes, messages))
            self._changed.notify_all()

    def follow(self, *, tick_s: float, stopped: Callable[[], bool]) -> Iterator[Message | None]:
        """Yield messages as they come, and None whenever none came for `tick_s`."""
        while True:
            with self._changed:
                if not self._waiting and stopped():
                    return
                self._changed.wait_for(lambda: self._waiting, tick_s)
                message = self._waiting.popleft() if self._waiting else None
                if message is not None:
                    self._bytes -= message_bytes(message)
            yield message


class ReceivedOutlet:
    """An outlet into the stream of this process; a message that it has is safe as long as that."""

    def __init__(self, received: Received) -> None:
        self._received = received

    def send(self, message: Message) -> "Future[int]":
        """Hand a message over; refused with BrokerError while the stream is behind."""
        sent: Future[int] = Future()
        if self._received.is_full:
            sent.set_exception(BrokerError("the stream is behind", hint="it is tried again"))
            return sent
        try:
            self._received.add([message])
        except RecordError as error:
            sent.set_exception(
                BrokerError(error.what, hint="raise kafka.max_message_bytes above packing")
            )
        else:
            sent.set_result(0)
        return sent

    def flush(self, timeout_s: float) -> None:
        """Do nothing: what was taken is there."""

    def close(self) -> None:
        """Do nothing: the stream is closed by who has made it."""
