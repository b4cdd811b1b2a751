"""One log through `replay`, and through a sidecar, Kafka and a worker: the same findings."""

import time
from pathlib import Path

import msgspec

from detector.finding import Finding
from ingest.key_file import new_secret
from tests.e2e.program import run
from tests.e2e.traffic import PAIR_EVERY_S, pairs, row
from tests.streams.process import until
from tests.streams.program import Program
from tests.streams.real import make_cluster

PAIRS = 40
NOT_LEARNING = ("--set", "detection.commonness.learning_ms=0")


def written(path: Path) -> Path:
    """Write requests that end now: Kafka keeps records by their event time."""
    began = time.time() - (PAIRS + 1) * PAIR_EVERY_S
    lines = []
    for one in map(row, pairs(PAIRS)):
        moved = {name: one[name] + began for name in ("ts", "ts_end")}
        lines.append(msgspec.json.encode({**one, **moved}))
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_a_cluster_finds_what_a_replay_finds(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    key_file, saved = tmp_path / "key", tmp_path / "findings.jsonl"
    new_secret(key_file)
    cluster = make_cluster(kafka, topic_prefix, key_file)
    log = written(tmp_path / "requests.jsonl")
    replayed = run("replay", log, "--save", saved, "--key-file", key_file, *NOT_LEARNING)
    assert replayed.returncode == 1, replayed.stderr
    lines = saved.read_bytes().splitlines()
    expected = {one.id: one for one in (msgspec.json.decode(each, type=Finding) for each in lines)}
    high = {one.id for one in expected.values() if one.confidence.value == "high"}
    assert len(high) == PAIRS
    with Program(cluster, tmp_path / "worker.log", *NOT_LEARNING):
        sent = run("run", "sidecar", "-", *cluster.arguments, stdin=log.read_bytes())
        assert sent.returncode == 0, sent.stderr
        until(lambda: expected.keys() <= cluster.findings().keys())
        streamed = {one.id: one for one in cluster.told()}
    assert streamed.keys() == expected.keys()
    assert {one.id for one in streamed.values() if one.confidence.value == "high"} == high
