"""Composition of a `run all` that listens: messages of sidecars over HTTP, in place of Kafka."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from detector.config.root import Settings
from detector.errors import SettingsError
from ingest.push.body import Bodies
from ingest.push.received import Received
from ingest.push.receiver import receiver
from ingest.push.server import PushServer
from ingest.push.token import read_token
from ingest.topics import topic_names


class Listening(NamedTuple):
    """What has come, and the port that it comes to."""

    received: Received
    server: PushServer


@contextmanager
def listening(settings: Settings) -> Iterator[Listening]:
    """Take messages on the address of `settings.push` until the block ends.

    Raises SettingsError without a key file, and for an address or a token file that is unusable.
    """
    if settings.key_file is None:
        raise SettingsError(
            "who listens needs the secret that sidecars seal under",
            where="key_file",
            hint="bleedwatch key new PATH makes one; give it to both sides",
        )
    topics = topic_names(settings.kafka.topic_prefix)
    received = Received(
        {*topics.inputs, topics.requests},
        most_bytes=settings.push.waiting_bytes,
        most_message_bytes=settings.kafka.max_message_bytes,
    )
    bodies = Bodies(settings.push, read_token(settings.push.token_file))
    server = PushServer(receiver(received, bodies, not_live=list), settings.push)
    try:
        yield Listening(received, server)
    finally:
        server.close()
