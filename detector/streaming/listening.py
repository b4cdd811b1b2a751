"""Composition of a `run all` that listens: messages of sidecars over HTTP, in place of Kafka."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from detector.config.root import Settings
from ingest.push.body import Bodies
from ingest.push.received import Received
from ingest.push.receiver import receiver
from ingest.push.server import PushServer
from ingest.push.token import read_token
from ingest.topics import topic_names


class Listening(NamedTuple):
    """What has come, and the port that it comes to."""

    received: Received
    port: int


@contextmanager
def listening(settings: Settings) -> Iterator[Listening]:
    """Take messages on the address of `settings.push` until the block ends.

    Raises SettingsError for an address or a token file that cannot be used.
    """
    topics = topic_names(settings.kafka.topic_prefix)
    received = Received(
        {*topics.inputs, topics.requests},
        most_bytes=settings.push.waiting_bytes,
        most_message_bytes=settings.kafka.max_message_bytes,
    )
    bodies = Bodies(settings.push, read_token(settings.push.token_file))
    server = PushServer(receiver(received, bodies, not_live=list), settings.push)
    try:
        yield Listening(received, server.port)
    finally:
        server.close()
