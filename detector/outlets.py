"""Composition of an outlet: to Kafka or over HTTP, with a spool in front where a folder is set."""

from detector.config.root import Settings
from ingest.broker import Publisher
from ingest.http_publisher import HttpPublisher
from ingest.kafka_io import KafkaPublisher
from ingest.outlet import Outlet
from ingest.spool import Spool
from ingest.spooled_outlet import SpooledOutlet


def new_outlet(settings: Settings) -> Outlet:
    """Return where a sidecar's messages go.

    With a spool the receiver may be away and nothing is raised for it; without one BrokerError is.
    Raises InputError for a spool that cannot be used, SettingsError for a file that cannot.
    """

    def connect() -> Publisher:
        if settings.http.url is not None:
            return HttpPublisher(settings.http)
        return KafkaPublisher(settings.kafka)

    if settings.spool.folder is None:
        return connect()
    return SpooledOutlet(connect, Spool(settings.spool.folder, settings.spool), settings.spool)


def receiver_name(settings: Settings) -> str:
    """Return where that is, for people."""
    return settings.http.url or settings.kafka.bootstrap_servers
