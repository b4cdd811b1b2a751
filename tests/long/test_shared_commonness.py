"""The recorded hour on two workers with eight partitions is as clean as on one."""

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from detector.config.root import Settings
from detector.evaluate import ARRIVAL_HOLD_MS
from detector.evaluation.outcome import Bleed, outcomes
from detector.finding import Confidence, Finding
from detector.index.window import Sequencer
from detector.model import Kind, Sequence
from detector.pipeline import Detector
from detector.reading import Reading
from detector.service import deployment_table, surest
from ingest.partitioning import partition_of
from tests.unit.sharing import Worker, broker

PARTITIONS, WORKERS = 8, 2

HISTORY_EVERY_MS, EVERY_MS = 60_000, 2_000
"""Event time between two turns of talking; live workers talk after every batch, so this is late."""

MAX_CLEAN, MAX_CLEAN_HIGH = 25, 1
"""The limits of one process with one memory."""

MIN_REPEATED = 46
"""Of 48, as on one."""


@pytest.fixture(scope="module")
def dev(recorded_traffic: Path) -> Path:
    return recorded_traffic / "dev"


@pytest.fixture(scope="module")
def traffic(dev: Path) -> dict[str, list[Sequence]]:
    settings = Settings()
    table = deployment_table(settings)
    return {
        name: list(Reading(settings, table).sequences([str(dev / f"{name}.jsonl.zst")]))
        for name in ("history", "requests", "planted_repeat_overlay")
    }


class Cluster:
    """Workers that take the partitions of the pools in turn."""

    def __init__(self, *, share: bool) -> None:
        detection = Settings().detection
        at = broker(PARTITIONS)
        self._workers = [
            Worker(
                at, detection, name=b"w%d" % number, owns=range(number, PARTITIONS, WORKERS),
                ranges=PARTITIONS, share=share,
            )
            for number in range(WORKERS)
        ]  # fmt: skip
        self._talked_ms: int | None = None
        self.found: list[Finding] = []

    def warm(self, history: Iterable[Sequence]) -> None:
        for number, one in enumerate(sorted(history, key=lambda one: one.started_at_ms)):
            partition = number % PARTITIONS  # the history names no pool
            worker = self._workers[partition % WORKERS]
            if partition not in worker.detectors:
                worker.detectors[partition] = Detector(worker.settings, memory=worker.memory)
            worker.detectors[partition].warm(one)
            self._talk(one.started_at_ms, every_ms=HISTORY_EVERY_MS)

    def observe(self, sequences: Iterable[Sequence]) -> None:
        arriving = sorted(sequences, key=lambda one: (one.ended_at_ms, one.kind is Kind.RESPONSE))
        sequencer = Sequencer(hold_ms=ARRIVAL_HOLD_MS)
        for arrived in arriving:
            for one in sequencer.push(arrived):
                self._observe(one)
        for one in sequencer.drain():
            self._observe(one)

    def _observe(self, one: Sequence) -> None:
        partition = partition_of(one.kv_pool.encode(), PARTITIONS)
        self.found += self._workers[partition % WORKERS].observe(one, partition=partition)
        self._talk(one.ended_at_ms, every_ms=EVERY_MS)

    def _talk(self, now_ms: int, *, every_ms: int) -> None:
        if self._talked_ms is None or now_ms - self._talked_ms >= every_ms:
            self._talked_ms = now_ms
            for worker in self._workers:
                worker.turn()


def findings(
    traffic: dict[str, list[Sequence]], sequences: Iterable[Sequence], *, share: bool = True
) -> list[Finding]:
    cluster = Cluster(share=share)
    cluster.warm(traffic["history"])
    cluster.observe(sequences)
    return surest(cluster.found)


def test_clean_traffic_on_two_workers_keeps_the_limits_of_one(
    traffic: dict[str, list[Sequence]],
) -> None:
    shared = findings(traffic, traffic["requests"])
    apart = findings(traffic, traffic["requests"], share=False)
    print(f"clean findings on two workers: {len(shared)} with sharing, {len(apart)} without")
    assert len(shared) <= MAX_CLEAN
    assert sum(one.confidence is Confidence.HIGH for one in shared) <= MAX_CLEAN_HIGH
    assert len(apart) > len(shared)


def test_a_bleed_that_repeats_over_all_pools_stays_found(
    dev: Path, traffic: dict[str, list[Sequence]]
) -> None:
    changed = traffic["planted_repeat_overlay"]
    names = {one.request_id for one in changed}
    kept = [one for one in traffic["requests"] if one.request_id not in names]
    truth = msgspec.json.Decoder(Bleed).decode_lines((dev / "truth_repeat.jsonl").read_bytes())
    found = outcomes(findings(traffic, [*kept, *changed]), truth)
    assert sum(one.found for one in found) >= MIN_REPEATED
