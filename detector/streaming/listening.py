"""Composition of a `run all` that listens: messages of sidecars over HTTP, in place of Kafka."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from detector.config.root import Settings
from detector.errors import SettingsError
from ingest.push.body import Bodies
from ingest.push.received import Received
from ingest.push.receiver import receiver
from ingest.push.server import PushServer
from ingest.push.token import read_token
from ingest.topics import topic_names


class Listening:
    """What has come, and the port that it comes to."""

    def __init__(self, received: Received, server: PushServer) -> None:
        self.received = received
        self.port = server.port
        self._server: PushServer | None = server

    def until(self, stopped: Callable[[], bool]) -> Callable[[], bool]:
        """Return the same; once it says so nothing more is taken, so that all can be finished."""

        def closed() -> bool:
            has_stopped = stopped()
            if has_stopped:
                self.close()
            return has_stopped

        return closed

    def close(self) -> None:
        """Take no more."""
        server, self._server = self._server, None
        if server is not None:
            server.close()


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
    made = Listening(received, PushServer(receiver(received, bodies, not_live=list), settings.push))
    try:
        yield made
    finally:
        made.close()
