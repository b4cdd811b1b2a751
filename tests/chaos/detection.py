"""The kill of a worker once more, with the real program and real detection."""

import contextlib
import random
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from detector.pipeline import Detector
from detector.settings import DetectionSettings
from ingest.broker import Message, TopicPartition
from ingest.key_file import new_secret
from tests.chaos.traffic import RECOVERY_S, Round
from tests.e2e.program import environment
from tests.streams.cluster import committed_of, now_ms
from tests.streams.process import until
from tests.streams.real import STEP_MS, Cluster, bleeding, make_cluster

COUNT = 120
PAUSE_S = 0.1
START_S = 240.0
"""The first worker may have to compile the kernels."""


def killed_detection(bootstrap: str, folder: Path, seed: int) -> Round:
    """A worker is killed while bleeds arrive; another one finishes."""
    key_file = folder / f"key-{seed}-{time.time_ns()}"
    new_secret(key_file)
    cluster = make_cluster(bootstrap, key_file.name, key_file)
    sequences = bleeding(seed, COUNT, now_ms() - 2 * COUNT * STEP_MS)
    judged = Detector(DetectionSettings())
    wanted = {one.id for sequence in sequences for one in judged.observe(sequence)}
    with _worker(cluster, folder / f"{key_file.name}-a.log") as a:
        sender = threading.Thread(target=_send_slowly, args=(cluster, cluster.packed(sequences)))
        sender.start()
        until(lambda: len(cluster.findings()) > 0)
        time.sleep(random.Random(seed).random() * 2)
        a.kill()
        a.wait()
        sender.join()
        topic = f"{cluster.settings.topic_prefix}.sequences"
        committed = committed_of(cluster.settings, f"{cluster.settings.topic_prefix}.workers")
        done = sum(committed.get(TopicPartition(topic, at), 0) for at in (0, 1))
        pending = 0 < len(cluster.findings()) < len(wanted)
    healed, flowing, before = time.monotonic(), None, cluster.findings()
    with _worker(cluster, folder / f"{key_file.name}-b.log"):
        found = cluster.findings()
        while not wanted <= set(found) and time.monotonic() < healed + RECOVERY_S:
            time.sleep(0.2)
            found = cluster.findings()
            if flowing is None and found.keys() > before.keys():
                flowing = time.monotonic()
    return Round(
        scenario="killed detection",
        counted=pending and done < len(cluster.packed(sequences)),
        findings=len(wanted),
        lost=len(wanted - set(found)),
        strange=len(set(found) - wanted),
        repeated=sum(count > 1 for count in found.values()),
        recovery_s=0.0 if flowing is None else flowing - healed,
    )


def _send_slowly(cluster: Cluster, messages: Sequence[Message]) -> None:
    for message in messages:
        cluster.send([message])
        time.sleep(PAUSE_S)


@contextlib.contextmanager
def _worker(cluster: Cluster, log: Path) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a worker that has said that it serves."""
    with log.open("wb") as file:
        process = subprocess.Popen(cluster.command, stderr=file, env=environment())
    try:
        until(lambda: "health on port" in log.read_text() or process.poll() is not None, START_S)
        yield process
    finally:
        process.kill()
        process.wait()
