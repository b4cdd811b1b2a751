"""Memory of a worker with many tenants and pools: `make tenants` (a million, ten thousand).

Traffic goes through the whole stream in memory, a short prompt and response for each tenant, all
pools by turns, and the peak of the process is printed.
"""

import argparse
import resource
import time
from collections.abc import Iterator

import numpy as np

from detector.model import EngineId, Kind, PoolId, RequestId, Sequence, TenantId
from detector.settings import DetectionSettings
from detector.sketch.token_table import Secret
from detector.streaming.handler import StreamHandler
from detector.streaming.local import EventClock, LocalStream
from ingest.packing_settings import PackingSettings
from ingest.sealing import KeyRing
from ingest.topics import topic_names

PROMPT_TOKENS, RESPONSE_TOKENS = 40, 30
"""Short ones: what is counted here is what a tenant costs, not what a token does."""

REQUESTS_PER_S = 250
"""A million in little more than an hour: a window holds a quarter of them."""

IN_A_ROW = 50
"""Requests of one pool after another: a message holds many, which saves time, not memory."""
PARTITIONS = 8
GIB = 1024**3


def requests(tenants: int, pools: int) -> Iterator[Sequence]:
    """Yield a prompt and a response of every tenant; starts rise by four milliseconds."""
    draw = np.random.default_rng(1)
    for number in range(tenants):
        started_ms = number * 1000 // REQUESTS_PER_S
        for kind, tokens, took_ms in (
            (Kind.PROMPT, PROMPT_TOKENS, 0),
            (Kind.RESPONSE, RESPONSE_TOKENS, 1),
        ):
            pool = number // IN_A_ROW % pools
            yield Sequence(
                tenant=TenantId(f"tenant-{number:08d}"), request_id=RequestId(f"req-{number:08d}"),
                kv_pool=PoolId(f"pool-{pool:05d}"), engine=EngineId("engine"), model="m",
                kind=kind, started_at_ms=started_ms, ended_at_ms=started_ms + took_ms,
                token_hashes=draw.integers(0, 2**32, tokens, np.uint32),
            )  # fmt: skip


def measure(tenants: int, pools: int) -> dict[str, float]:
    """Run the traffic; return the peak of the process (GiB), the seconds and what was judged."""
    ring = KeyRing.of(Secret(bytes(range(32))))
    events, topics = EventClock(), topic_names("bench")
    handler = StreamHandler(
        DetectionSettings(), topics=topics, ring=lambda: ring, partitions=PARTITIONS, clock=events
    )
    stream = LocalStream(
        handler, topics=topics, ring=ring, partitions=PARTITIONS,
        settings=handler.stream, packing=PackingSettings(), events=events, clock=events,
    )  # fmt: skip
    began = time.perf_counter()
    for sequence in requests(tenants, pools):
        list(stream.send(sequence))
    list(stream.finish())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "tenants": tenants,
        "pools": pools,
        "responses": handler.totals().stats.responses,
        "seconds": round(time.perf_counter() - began, 1),
        "peak_gib": round(peak / GIB, 2),
        "commonness_gib": round(handler.memory.seen.nbytes / GIB, 2),
        "index_gib": round(
            sum(held.window.detector.index_bytes for held in handler.held.values()) / GIB, 2
        ),
        "parties": len(handler.memory.parties),
    }


def main() -> None:
    """Measure with the numbers of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=1_000_000)
    parser.add_argument("--pools", type=int, default=10_000)
    given = parser.parse_args()
    for name, value in measure(given.tenants, given.pools).items():
        print(f"{name:>16}  {value:,}")


if __name__ == "__main__":
    main()
