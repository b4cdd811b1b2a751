"""The output to a Kafka topic, keyed by incident, so that its order is kept."""

from concurrent.futures import Future
from typing import Final, Protocol

from detector.errors import BrokerError
from exporters.outputs.contract import Delivered, Outcome, Retry
from exporters.outputs.formats import native
from exporters.outputs.notification import Notification
from exporters.outputs.settings import KafkaOutputSettings

Headers = tuple[tuple[str, bytes], ...]


PARTS: Final = 3
"""Of a time-out: to connect and to hand over, which is the topic's, and to be acknowledged."""


class Topic(Protocol):
    """One topic of a cluster that may be away.

    Whoever puts the program together gives it: the client of Kafka belongs to the other side.
    """

    def publish(self, key: bytes, value: bytes, headers: Headers) -> "Future[int]":
        """Send; the future gives the offset once the broker has it, or raises BrokerError."""
        ...

    def close(self) -> None:
        """Let go of the connections."""
        ...


class KafkaOutput:
    """Sends the native form. The header `webhook-id` holds the idempotency id."""

    resend_ms: int | None = None

    def __init__(self, settings: KafkaOutputSettings, topic: Topic) -> None:
        self.name = settings.name
        self._topic = topic
        self._timeout_s = settings.timeout_ms / 1000 / PARTS

    def send(self, notification: Notification, *, at_ms: int) -> Outcome:  # noqa: ARG002 - the broker stamps
        """Publish it and wait for the broker's acknowledgement."""
        headers = (
            ("content-type", b"application/json"),
            ("webhook-id", notification.id.encode()),
        )
        key = notification.incident_id.encode()
        try:
            sent = self._topic.publish(key, native.encode(notification), headers)
            offset = sent.result(self._timeout_s)
        except TimeoutError:
            return Retry("timed out")
        except BrokerError:
            return Retry("the broker did not take it")
        return Delivered(f"offset {offset}")

    def close(self) -> None:
        """Let go of the topic."""
        self._topic.close()
