"""The global tier on Kafka: two workers, each with a pool, and one response in both."""

import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import numpy as np
import pytest

from detector.model import EngineId, Kind, PoolId, RequestId, TenantId
from detector.model import Sequence as Tokens
from ingest.key_file import new_secret
from ingest.partitioning import partition_of
from tests.e2e.program import environment
from tests.streams.cluster import now_ms
from tests.streams.process import until
from tests.streams.real import Cluster, make_cluster

PARTITIONS = 2
COPIES, TOKENS = 12, 300
START_S = 240.0
"""A first start after a change of the kernels compiles them, on a machine that may be busy."""

NAMES = [f"pool-{number}" for number in range(16)]
HERE, THERE = (
    next(name for name in NAMES if partition_of(name.encode(), PARTITIONS) == home)
    for home in range(PARTITIONS)
)


@pytest.fixture
def cluster(kafka: str, topic_prefix: str, tmp_path: Path) -> Cluster:
    new_secret(tmp_path / "key")
    return make_cluster(kafka, topic_prefix, tmp_path / "key", partitions=PARTITIONS)


def swapped(start_ms: int) -> list[Tokens]:
    """Return responses, each once to a tenant of one pool and then to one of the other."""
    chance = np.random.default_rng(1)
    one = Tokens(
        tenant=TenantId("a"), request_id=RequestId("r"), kv_pool=PoolId(HERE),
        engine=EngineId("e"), model="m", kind=Kind.RESPONSE, started_at_ms=start_ms,
        ended_at_ms=start_ms, token_hashes=np.empty(0, np.uint32),
    )  # fmt: skip
    made = []
    for number in range(COPIES):
        tokens = chance.integers(0, 2**32, TOKENS, dtype=np.uint32)
        for late, (tenant, pool) in enumerate((("a", HERE), ("b", THERE))):
            at_ms = start_ms + (2 * number + late) * 50
            made.append(
                msgspec.structs.replace(
                    one, tenant=TenantId(tenant), request_id=RequestId(f"{tenant}{number}"),
                    kv_pool=PoolId(pool), started_at_ms=at_ms, ended_at_ms=at_ms,
                    token_hashes=tokens,
                )
            )  # fmt: skip
    return made


@contextmanager
def worker(cluster: Cluster, log: Path, *, tier: bool = True) -> Iterator["Worker"]:
    """Run a worker for the time of a `with` block."""
    chosen = ["--set", f"stream.global_tier={str(tier).lower()}"]
    with log.open("wb") as file:
        process = subprocess.Popen([*cluster.command, *chosen], stderr=file, env=environment())
    with process:
        try:
            yield Worker(process, log)
        finally:
            process.kill()


class Worker:
    """A running worker, asked over HTTP."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self._log = log

    def responses(self) -> int:
        """Return how many responses it has taken; -1 before it serves."""
        port = re.search(r"health on port (\d+)", self._log.read_text())
        if port is None:
            return -1
        with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/metrics", timeout=5) as answer:
            page = answer.read().decode()
        counted = re.search(r'bleedwatch_sequences_total\{kind="response"\} (\S+)', page)
        return round(float(counted[1])) if counted else 0


def test_two_workers_find_what_went_to_the_other_ones_pool(
    cluster: Cluster, tmp_path: Path
) -> None:
    with worker(cluster, tmp_path / "1") as one, worker(cluster, tmp_path / "2") as other:
        until(lambda: min(one.responses(), other.responses()) >= 0, START_S)
        cluster.send(cluster.packed(swapped(now_ms() - 2_000)))
        until(lambda: len(cluster.findings()) == COPIES, 60.0)
        assert one.responses() + other.responses() >= 2 * COPIES
        assert min(one.responses(), other.responses()) > 0, "each has a pool"
        for each in (one, other):
            each.process.send_signal(signal.SIGTERM)
            assert each.process.wait(20) == 0
    assert len(cluster.findings()) == COPIES


def test_switched_off_it_is_silent(cluster: Cluster, tmp_path: Path) -> None:
    cluster.send(cluster.packed(swapped(now_ms() - 2_000)))
    with worker(cluster, tmp_path / "1", tier=False) as one:
        until(lambda: one.responses() == 2 * COPIES, START_S)
    assert not cluster.findings()
