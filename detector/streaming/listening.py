"""Composition of a `run all` that listens: sidecars and gateways over HTTP, in place of Kafka."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from detector.config.root import Settings
from detector.errors import SettingsError
from detector.streaming.push_inside import PushInside
from exporters.http.shown_metrics import metrics_of
from exporters.joined import Joined
from exporters.sidecar_metrics import SidecarMetrics
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
    inside: PushInside

    def until(self, stopped: Callable[[], bool]) -> Callable[[], bool]:
        """Return the same; once it says so nothing more is taken, and the rest is on its way."""
        return self.inside.until(self.server.until(stopped))


@contextmanager
def listening(settings: Settings, metrics: Joined) -> Iterator[Listening]:
    """Take messages and pushes on the address of `settings.push` until the block ends.

    Whoever asks there for metrics gets `metrics`, to which those of pushes are added.

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
    inside = PushInside(settings, received, bodies)
    server = PushServer(
        receiver(
            received,
            bodies,
            not_live=inside.not_live,
            not_ready=inside.not_ready,
            pushes=inside.app,
            metrics=metrics_of(metrics.registry),
        ),
        settings.push,
    )
    metrics.add(SidecarMetrics(inside).registry)
    inside.start()
    try:
        yield Listening(received, server, inside)
    finally:
        server.close()
        inside.end()
