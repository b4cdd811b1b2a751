"""Who reads every topic without the secret learns no token, hash, shingle or key.

A real worker finds a planted bleed, learns a common phrase, tells others, refuses a broken batch
and writes rows: then every topic is swept. The same sweep on a build without sealing finds all.
"""

import random
import signal
import struct
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from detector.model import EngineId, Kind, PoolId, RequestId, Sequence, TenantId
from detector.sketch.shingle import shingle_keys
from detector.sketch.token_table import Keys, TokenTable
from ingest.broker import Message, TopicPartition
from ingest.kafka_io import KafkaReader
from ingest.key_file import load_secret, new_secret
from ingest.topics import topic_names
from tests.content.tree import ROOT
from tests.e2e.program import environment
from tests.hostile.attack import read_all
from tests.privacy.canary import IDS
from tests.privacy.sweep import Secrets, Sweep, unpacked
from tests.privacy.unsealed_main import BUILD
from tests.streams.cluster import now_ms
from tests.streams.process import until
from tests.streams.real import Cluster, make_cluster

PHRASE = tuple(random.Random(0xC0FFEE).sample(range(20_000, 2**16), 48))
"""What three tenants show: it is common, and workers tell each other so."""

CANARIES = (IDS, PHRASE)
READY_S = 240.0
"""A first start after a change of the kernels compiles them, on a machine that may be busy."""

USED = ("sequences", "requests", "findings", "dead-letter", "shingles", "commonness")
"""Topics that must hold something, or the sweep proves nothing."""


class TopicSweep:
    """Looks for the canaries as ids, as hashes in a row, and for each of their shingles alone."""

    def __init__(self, keys: Keys, key_file: Path) -> None:
        table = TokenTable(keys.hash_key)
        hashes = [table.hash(canary) for canary in CANARIES]
        secret = bytes.fromhex(key_file.read_text())
        self._sweep = Sweep(
            Secrets(
                ids=CANARIES,
                hashes=[one.tolist() for one in hashes],
                keys=(secret, keys.hash_key, keys.seal_key, keys.tag_key),
            )
        )
        shingles = np.concatenate([shingle_keys(one).view(np.uint64) for one in hashes]).tolist()
        self._shingles = [struct.pack(f"{order}Q", one) for one in shingles for order in "<>"]

    def found_in(self, data: bytes) -> set[str]:
        """Return the kinds of what is in `data`."""
        found = self._sweep.bytes(data)
        for plain in (data, *unpacked(data)):
            found |= {"a shingle" for one in self._shingles if one in plain}
        return found


def traffic(table: TokenTable, start_ms: int) -> Iterator[Sequence]:
    """Yield a phrase that three tenants show, and a prompt whose words another tenant receives."""
    chance = np.random.default_rng(3)
    plan = [
        *((f"tenant-{at}", Kind.PROMPT, PHRASE) for at in range(3)),
        ("acme", Kind.PROMPT, IDS),
        ("globex", Kind.RESPONSE, IDS),
    ]
    for number, (tenant, kind, canary) in enumerate(plan):
        around = chance.integers(2**16, 2**17, (2, 30)).tolist()
        yield Sequence(
            tenant=TenantId(tenant), request_id=RequestId(f"{tenant}-{number}"),
            kv_pool=PoolId("p"), engine=EngineId("e"), model="m", kind=kind,
            started_at_ms=start_ms + number, ended_at_ms=start_ms + number,
            token_hashes=table.hash([*around[0], *canary, *around[1]]),
            key_id=table.key_id,
        )  # fmt: skip


def broken(message: Message) -> Message:
    """Return a batch with one byte of its ciphertext changed."""
    value = bytearray(message.value or b"")
    value[-1] ^= 1
    return message._replace(value=bytes(value))


def work(command: list[str], log: Path, reader: KafkaReader, used: list[str]) -> None:
    """Run a worker until every one of these topics holds something, then stop it in order."""
    parts = {topic: range(reader.partitions(topic)) for topic in used}

    def all_used() -> bool:
        ends = [sum(reader.end(TopicPartition(topic, at)) for at in parts[topic]) for topic in used]
        assert process.poll() is None, log.read_text()
        return all(ends)

    with (
        log.open("wb") as file,
        subprocess.Popen(command, stderr=file, env=environment(), cwd=ROOT) as process,
    ):
        try:
            until(all_used, READY_S)
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, log.read_text()
        finally:
            process.kill()


def swept(cluster: Cluster, program: list[str], log: Path) -> dict[str, set[str]]:
    """Run a worker over the traffic until all topics are used; return what each of them shows."""
    prefix = f"{cluster.settings.topic_prefix}."
    keys = load_secret(cluster.key_file).keys()
    table = TokenTable(keys.hash_key, key_id=keys.key_id)
    batches = cluster.packed(list(traffic(table, now_ms() - 60_000)), per_message=2)
    cluster.send([broken(batches[0]), *batches])
    sweep = TopicSweep(keys, cluster.key_file)
    found: defaultdict[str, set[str]] = defaultdict(set)
    reader = KafkaReader(cluster.settings)
    try:
        command = [sys.executable, *program, "run", "worker", *cluster.arguments]
        work(command, log, reader, [prefix + name for name in USED])
        for record in read_all(reader, topic_names(cluster.settings.topic_prefix)):
            for part in (record.value, record.key, *(value for _, value in record.headers)):
                found[record.topic.removeprefix(prefix)] |= sweep.found_in(part or b"")
    finally:
        reader.close()
    assert set(found) >= set(USED)
    found["the log"] = sweep.found_in(log.read_bytes())
    return {place: finds for place, finds in found.items() if finds}


@pytest.fixture
def cluster(kafka: str, topic_prefix: str, tmp_path: Path) -> Cluster:
    key_file = tmp_path / "key"
    new_secret(key_file)
    return make_cluster(kafka, topic_prefix, key_file)


def test_a_reader_of_every_topic_learns_no_hash(cluster: Cluster, tmp_path: Path) -> None:
    program = ["-c", "from detector.cli.app import main; main()"]
    assert swept(cluster, program, tmp_path / "log") == {}


def test_a_build_that_seals_nothing_is_caught(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for owner, name, replacement in BUILD:
        monkeypatch.setattr(owner, name, replacement)
    found = swept(cluster, ["-m", "tests.privacy.unsealed_main"], tmp_path / "log")
    assert found == {
        "sequences": {"hashes as <u32"},
        "shingles": {"a shingle"},
        "commonness": {"a shingle"},
        "findings": {"a shingle"},
    }
