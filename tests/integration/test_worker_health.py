"""A worker process over Kafka shows what it does: ready, counting, no lag, every bleed found."""

import math
import time

from ingest.kafka_io import KafkaPublisher, KafkaReader
from tests.load.feed import Feed
from tests.load.process import workers
from tests.load.stage import prepared
from tests.load.traffic import DURATION_MS, Traffic
from tests.load.watch import FindingWatch

SECONDS = DURATION_MS / 1000 + 5
"""Until responses have come for five seconds."""


def test_a_worker_finds_every_bleed_and_counts_what_it_read(kafka: str) -> None:
    with (
        prepared(kafka, {}) as place,
        workers(1, place.given, folder=place.folder) as (worker,),
        FindingWatch(KafkaReader(place.settings.kafka), place.topics.findings) as watch,
    ):
        publisher = KafkaPublisher(place.settings.kafka)
        feed = Feed(
            Traffic(seed=1),
            place.packer(),
            publisher,
            tokens_per_second=20_000,
            bleeds_per_second=4.0,
        )
        feed.run(SECONDS)
        feed.finish()
        publisher.close()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not set(feed.acknowledged) <= set(watch.came_at):
            time.sleep(0.1)
        assert len(feed.acknowledged) > 10
        assert set(feed.acknowledged) <= set(watch.came_at)
        seen = worker.metrics(
            (
                "bleedwatch_tokens_total",
                "bleedwatch_assigned_partitions",
                "bleedwatch_warming_partitions",
                "bleedwatch_findings_total",
                "bleedwatch_dead_letters_total",
            )
        )
        assert seen["bleedwatch_tokens_total"] == feed.tokens
        assert seen["bleedwatch_assigned_partitions"] == place.settings.kafka.partitions
        assert seen["bleedwatch_warming_partitions"] == 0
        assert seen["bleedwatch_findings_total"] == watch.messages
        assert seen["bleedwatch_dead_letters_total"] == 0
        worker.await_ready()
        lag = math.inf  # its metrics are put together once a second
        while lag and time.monotonic() < deadline:
            lag = worker.metrics(("bleedwatch_lag_records",))["bleedwatch_lag_records"]
            time.sleep(0.1)
        assert lag == 0
        assert worker.stop() == 0
