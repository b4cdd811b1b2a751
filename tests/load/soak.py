"""What workers on a core each sustain: rate, lag, memory over time, CPU for each token."""

import time
from typing import Final, NamedTuple

from ingest.kafka_io import KafkaPublisher
from tests.load.feed import Feed
from tests.load.process import WorkerProcess, workers
from tests.load.stage import stage, stamp
from tests.load.traffic import Traffic

TOKENS_PER_SECOND: Final = 1_000_000

WORKERS: Final = 1
"""Each is pinned to a core of its own; the broker and the sender use what is left."""

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
_SHARED: Final = "bleedwatch_shared_showings_total"
_TOLD: Final = "told"
_HEARD: Final = "heard"


def run(
    seconds: float,
    sampling: str,
    tokens_per_second: int = TOKENS_PER_SECOND,
    *,
    count: int = WORKERS,
    urgent: bool = False,
) -> list[dict[str, object]]:
    """Publish at a rate and return a row for each step; the last row is the whole run.

    What is shown is the sum over so many workers.
    """
    given = {**GIVEN, "detection.index.sampling": sampling}
    with (
        stage(given, urgent=urgent) as place,
        workers(count, place.given, folder=place.folder, is_pinned=True) as running,
    ):
        publisher = KafkaPublisher(place.settings.kafka)
        feed = Feed(Traffic(seed=1), place.packer(), publisher, tokens_per_second=tokens_per_second)
        stamp(f"{sampling}: {tokens_per_second:,} tokens/s to {count} for {seconds:.0f} s")
        rows = _steps(feed, running, seconds)
        feed.finish()
        publisher.close()
    return rows


def _steps(feed: Feed, running: list[WorkerProcess], seconds: float) -> list[dict[str, object]]:
    points = [_point(feed, running)]
    rows: list[dict[str, object]] = []
    while points[-1].at - points[0].at < seconds:
        feed.run(STEP_SECONDS)
        points.append(_point(feed, running))
        rows.append(_row(points[-2], points[-1], f"{points[-1].at - points[0].at:.0f} s"))
        stamp(str(rows[-1]))
    return [*rows, _row(points[0], points[-1], "all")]


class _Point(NamedTuple):
    """Sums over all workers at one moment."""

    at: float
    cpu_seconds: float
    waited_seconds: float
    resident_bytes: int
    seen: dict[str, float]
    sent_tokens: int
    sent_bytes: int


def _point(feed: Feed, running: list[WorkerProcess]) -> _Point:
    seen = dict.fromkeys((_TOKENS, _LAG, _POSTINGS, _TOLD, _HEARD), 0.0)
    for worker in running:
        for name, value in worker.metrics((_TOKENS, _LAG, _POSTINGS)).items():
            seen[name] += value
        for direction in (_TOLD, _HEARD):
            seen[direction] += worker.metrics((_SHARED,), {"direction": direction})[_SHARED]
    used = [worker.usage() for worker in running]
    return _Point(
        time.monotonic(),
        sum(one.cpu_seconds for one in used),
        sum(one.waited_seconds for one in used),
        sum(one.resident_bytes for one in used),
        seen,
        feed.tokens,
        feed.bytes,
    )


def _row(begin: _Point, end: _Point, name: str) -> dict[str, object]:
    seconds = end.at - begin.at
    tokens = end.seen[_TOKENS] - begin.seen[_TOKENS]
    sent = end.sent_tokens - begin.sent_tokens
    cpu = end.cpu_seconds - begin.cpu_seconds

    def each(total: float) -> float:
        return total / tokens if tokens else 0.0

    return {
        "after": name,
        "tokens/s": round(tokens / seconds),
        "ns CPU/token": round(each(cpu) * 1e9),
        "cores": round(cpu / seconds, 2),
        "waiting for a core": round((end.waited_seconds - begin.waited_seconds) / seconds, 2),
        "lag records": int(end.seen[_LAG]),
        "postings": int(end.seen[_POSTINGS]),
        "told/token": round(each(end.seen[_TOLD] - begin.seen[_TOLD]), 3),
        "heard/token": round(each(end.seen[_HEARD] - begin.seen[_HEARD]), 3),
        "bytes/token": round((end.sent_bytes - begin.sent_bytes) / sent, 2) if sent else 0.0,
        "RSS MiB": end.resident_bytes >> 20,
    }
