"""What one worker on one core sustains: rate, lag, memory over time, CPU for each token."""

import time
from typing import Final, NamedTuple

from ingest.kafka_io import KafkaPublisher
from tests.load.feed import Feed
from tests.load.process import Usage, WorkerProcess, workers
from tests.load.stage import stage, stamp
from tests.load.traffic import Traffic

TOKENS_PER_SECOND: Final = 1_000_000

CORE: Final = 0
"""The worker is pinned to this core; the broker and the sender use what is left."""

STEP_SECONDS: Final = 15.0

GIVEN: Final = {
    "detection.commonness.learning_ms": "0",
    # a window of 2 minutes, so that a short run sees windows come and go: the load per second is
    # the same, the memory that of a longer window at a lower rate
    "detection.window.length_ms": "60000",
    "detection.window.longest_response_ms": "30000",
    "detection.window.grace_ms": "30000",
    "detection.index.memory_bytes": "6GiB",
}

_TOKENS: Final = "bleedwatch_tokens_total"
_LAG: Final = "bleedwatch_lag_records"
_POSTINGS: Final = "bleedwatch_index_postings"


def run(
    seconds: float,
    sampling: str,
    tokens_per_second: int = TOKENS_PER_SECOND,
    *,
    urgent: bool = False,
) -> list[dict[str, object]]:
    """Publish at a rate and return a row for each step; the last row is the whole run."""
    given = {**GIVEN, "detection.index.sampling": sampling}
    with (
        stage(given, urgent=urgent) as place,
        workers(1, place.given, folder=place.folder, core=CORE) as (worker,),
    ):
        publisher = KafkaPublisher(place.settings.kafka)
        feed = Feed(Traffic(seed=1), place.packer(), publisher, tokens_per_second=tokens_per_second)
        stamp(f"{sampling}: {tokens_per_second:,} tokens/s for {seconds:.0f} s")
        rows = _steps(feed, worker, seconds)
        feed.finish()
        publisher.close()
    return rows


def _steps(feed: Feed, worker: WorkerProcess, seconds: float) -> list[dict[str, object]]:
    points = [_point(worker)]
    rows: list[dict[str, object]] = []
    while points[-1].at - points[0].at < seconds:
        feed.run(STEP_SECONDS)
        points.append(_point(worker))
        rows.append(_row(points[-2], points[-1], f"{points[-1].at - points[0].at:.0f} s"))
        stamp(str(rows[-1]))
    return [*rows, _row(points[0], points[-1], "all")]


class _Point(NamedTuple):
    at: float
    usage: Usage
    seen: dict[str, float]


def _point(worker: WorkerProcess) -> _Point:
    return _Point(time.monotonic(), worker.usage(), worker.metrics((_TOKENS, _LAG, _POSTINGS)))


def _row(begin: _Point, end: _Point, name: str) -> dict[str, object]:
    seconds = end.at - begin.at
    tokens = end.seen[_TOKENS] - begin.seen[_TOKENS]
    cpu = end.usage.cpu_seconds - begin.usage.cpu_seconds
    waited = end.usage.waited_seconds - begin.usage.waited_seconds
    return {
        "after": name,
        "tokens/s": round(tokens / seconds),
        "ns CPU/token": round(cpu / tokens * 1e9) if tokens else 0,
        "cores": round(cpu / seconds, 2),
        "waiting for a core": round(waited / seconds, 2),
        "lag records": int(end.seen[_LAG]),
        "postings": int(end.seen[_POSTINGS]),
        "RSS MiB": end.usage.resident_bytes >> 20,
    }
