"""How long after the broker has a bleed its finding lies on the topic, at a steady rate."""

from typing import Final

import numpy as np

from ingest.kafka_io import KafkaPublisher, KafkaReader
from tests.load.feed import Feed
from tests.load.process import workers
from tests.load.stage import Stage, stage, stamp
from tests.load.traffic import Traffic
from tests.load.watch import FindingWatch

TOKENS_PER_SECOND: Final = 200_000

BLEEDS_PER_SECOND: Final = 5.0

WARM_SECONDS: Final = 30.0
"""Until every response has its prompt and the stock phrases are known to be common."""

LAST_SECONDS: Final = 10.0
"""How long findings are waited for after the end."""

GIVEN: Final = {"detection.commonness.learning_ms": "0"}


def run(
    seconds: float, tokens_per_second: int = TOKENS_PER_SECOND, *, urgent: bool = False
) -> list[dict[str, object]]:
    """Measure and return the rows of a table; times are from acknowledgement to being read."""
    with (
        stage(GIVEN, urgent=urgent) as place,
        workers(1, place.given, folder=place.folder) as (worker,),
    ):
        publisher = KafkaPublisher(place.settings.kafka)
        feed, watch = _prepare(place, publisher, tokens_per_second)
        with watch:
            stamp(f"warming up for {WARM_SECONDS:.0f} s at {tokens_per_second:,} tokens/s")
            feed.run(WARM_SECONDS)
            counted_from = set(feed.acknowledged)
            before, began = worker.usage(), feed.tokens
            stamp(f"measuring for {seconds:.0f} s")
            feed.run(seconds)
            after, tokens = worker.usage(), feed.tokens - began
            feed.finish()
            watch.await_quiet(LAST_SECONDS / 2, at_most=LAST_SECONDS)
        publisher.close()
    waits = [
        watch.came_at[name] - acknowledged
        for name, acknowledged in feed.acknowledged.items()
        if name in watch.came_at and name not in counted_from
    ]
    planted = set(feed.acknowledged) - counted_from
    p50, p90, p99 = np.percentile(waits, [50, 90, 99])
    return [
        _row("rate published", tokens / seconds, "tokens/s"),
        _row("bleeds planted", len(planted), ""),
        _row("of them found", len(planted & set(watch.came_at)), ""),
        _row("acknowledged to found, median", p50, "s"),
        _row("acknowledged to found, p90", p90, "s"),
        _row("acknowledged to found, p99", p99, "s"),
        _row("acknowledged to found, longest", max(waits), "s"),
        _row("worker CPU", (after.cpu_seconds - before.cpu_seconds) / seconds, "cores"),
        _row(
            "worker waited for a core", (after.waited_seconds - before.waited_seconds) / seconds, ""
        ),
        _row("worker memory", after.resident_bytes / 2**20, "MiB"),
    ]


def _prepare(
    place: Stage, publisher: KafkaPublisher, tokens_per_second: int
) -> tuple[Feed, FindingWatch]:
    feed = Feed(
        Traffic(seed=1),
        place.packer(),
        publisher,
        tokens_per_second=tokens_per_second,
        bleeds_per_second=BLEEDS_PER_SECOND,
    )
    return feed, FindingWatch(KafkaReader(place.settings.kafka), place.topics.findings)


def _row(measured: str, value: float, unit: str) -> dict[str, object]:
    return {"measured": measured, "value": round(value, 3), "unit": unit}
