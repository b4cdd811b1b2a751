"""Composition of an outlet: to Kafka, with a spool in front where a folder for one is set."""

from detector.config.root import Settings
from ingest.kafka_io import KafkaPublisher
from ingest.outlet import Outlet
from ingest.spool import Spool
from ingest.spooled_outlet import SpooledOutlet


def new_outlet(settings: Settings) -> Outlet:
    """Return where a sidecar's messages go.

    With a spool the broker may be away and nothing is raised for it; without one BrokerError is.
    Raises InputError for a spool that cannot be used.
    """
    if settings.spool.folder is None:
        return KafkaPublisher(settings.kafka)
    spool = Spool(settings.spool.folder, settings.spool)
    return SpooledOutlet(lambda: KafkaPublisher(settings.kafka), spool, settings.spool)
