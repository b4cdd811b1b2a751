"""Composition of the KV events: a feed for every publisher that the settings name."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from detector.config.root import Settings
from detector.errors import SettingsError
from detector.sketch.token_table import TokenTable
from ingest.key_rotation import RotatingKeys
from ingest.kv_events.feed import KvEventFeed
from ingest.kv_events.tags import BlockTags
from ingest.tenancy import Tenancy


class HashKeys(Protocol):
    """The secret of the moment, and the token table under it."""

    rotating: RotatingKeys

    def table(self, now_s: float) -> TokenTable:
        """Return the table; the key file is read again from time to time."""
        ...


@contextmanager
def kv_event_feeds(settings: Settings, made: Callable[[], HashKeys]) -> Iterator[list[KvEventFeed]]:
    """Subscribe to all publishers; they are let go of at the end.

    `made` reads the keys, and is called only if there is a publisher. Raises SettingsError if
    ZeroMQ is not installed, or if an endpoint cannot be used; KeyFileError as `made` does.
    """
    sources = settings.kv_events.sources
    if not sources:
        yield []
        return
    try:
        import zmq  # noqa: PLC0415 - an optional package

        from ingest.kv_events.subscribe import Subscription  # noqa: PLC0415
    except ImportError:
        raise SettingsError(
            "KV events need ZeroMQ, which is not installed",
            where="kv_events.sources",
            hint="pip install 'bleedwatch[kv-events]'",
        ) from None
    tenancy, keys = Tenancy(settings.tenancy), made()
    with ExitStack() as stack:
        feeds = []
        for source in sources:
            try:
                subscription = Subscription(
                    source.endpoint, topic=source.topic, replay_endpoint=source.replay_endpoint
                )
            except zmq.ZMQError as error:
                raise SettingsError(
                    f"the endpoint of engine {source.engine} cannot be used: {error.strerror}",
                    where="kv_events.sources",
                    hint="give the engine's own, such as tcp://127.0.0.1:5557",
                ) from None
            feeds.append(
                KvEventFeed(
                    stack.enter_context(subscription),
                    source,
                    settings.kv_events,
                    tenancy=tenancy,
                    table=keys.table,
                    tags=lambda: BlockTags(keys.rotating.current.tag_key),
                )
            )
        yield feeds
