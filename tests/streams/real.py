"""Traffic with bleeds for real workers: sealed, sent to a cluster, and the findings read back."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from detector.finding import Finding
from detector.model import EngineId, Kind, PoolId, RequestId, TenantId
from detector.model import Sequence as Tokens
from ingest.broker import Message, TopicPartition
from ingest.kafka_admin import KafkaAdmin
from ingest.kafka_io import KafkaPublisher, KafkaReader
from ingest.kafka_settings import KafkaSettings
from ingest.key_file import load_secret
from ingest.packing import Packer
from ingest.packing_forms import SealedForm
from ingest.packing_settings import PackingSettings
from ingest.schema_sequence import to_record
from ingest.sealing import KeyRing
from ingest.topics import topic_names, topic_specs

TOKENS = 120
BLEED = 40
STEP_MS = 50
PROGRAM = "from detector.cli.app import main; main()"


class Cluster(NamedTuple):
    """A cluster with the topics of one installation, and the secret."""

    settings: KafkaSettings
    key_file: Path

    @property
    def arguments(self) -> list[str]:
        """The flags of `bleedwatch run worker`, without those of a test."""
        kafka = self.settings
        values = {
            "kafka.bootstrap_servers": kafka.bootstrap_servers,
            "kafka.topic_prefix": kafka.topic_prefix,
            "kafka.session_timeout_ms": "3s",
            "metrics.port": "0",
        }
        flags = [part for name, value in values.items() for part in ("--set", f"{name}={value}")]
        return ["--key-file", str(self.key_file), *flags]

    @property
    def command(self) -> list[str]:
        """The whole command line of a worker."""
        return [sys.executable, "-c", PROGRAM, "run", "worker", *self.arguments]

    def send(self, messages: Sequence[Message]) -> None:
        """Publish and wait for every acknowledgement."""
        publisher = KafkaPublisher(self.settings)
        try:
            for message in messages:
                publisher.send(message)
            publisher.flush(60.0)
        finally:
            publisher.close()

    def packed(self, sequences: Sequence[Tokens], *, per_message: int = 4) -> list[Message]:
        """Return messages of a few sequences each, sealed under the secret."""
        ring = KeyRing.of(load_secret(self.key_file))
        topic = topic_names(self.settings.topic_prefix).sequences
        packer = Packer(topic, SealedForm(lambda: ring), PackingSettings())
        made: list[Message] = []
        for at, sequence in enumerate(sequences, 1):
            made += packer.add(to_record(sequence), 0.0)
            if at % per_message == 0:
                made += packer.drain()
        return [*made, *packer.drain()]

    def findings(self) -> Counter[str]:
        """Return the ids on the topic of findings, with how often each is there."""
        return Counter(one.id for one in self.told())

    def told(self) -> Iterator[Finding]:
        """Yield what is on the topic of findings."""
        topic = topic_names(self.settings.topic_prefix).findings
        decoder = msgspec.json.Decoder(Finding)
        reader = KafkaReader(self.settings)
        try:
            parts = [TopicPartition(topic, at) for at in range(reader.partitions(topic))]
            left = {at: (reader.beginning(at), reader.end(at)) for at in parts}
            left = {at: span for at, span in left.items() if span[0] < span[1]}
            reader.assign({at: span[0] for at, span in left.items()})
            missing = set(left)
            while missing:
                for record in reader.poll(1.0):
                    at = TopicPartition(record.topic, record.partition)
                    yield decoder.decode(record.value or b"")
                    if record.offset + 1 >= left[at][1]:
                        missing.discard(at)
        finally:
            reader.close()


def make_cluster(bootstrap: str, prefix: str, key_file: Path, *, partitions: int = 2) -> Cluster:
    """Make the topics of an installation."""
    settings = KafkaSettings(
        bootstrap_servers=bootstrap, topic_prefix=prefix, partitions=partitions
    )
    with KafkaAdmin(settings) as admin:
        admin.create(topic_specs(settings))
    return Cluster(settings, key_file)


def bleeding(seed: int, count: int, start_ms: int, *, lag: int = 0) -> list[Tokens]:
    """Return so many prompts, and to each a response elsewhere that repeats BLEED of its tokens.

    Four pools, so that every partition has some; event times are STEP_MS apart. A response comes
    behind as many later prompts as `lag` says.
    """
    chance = np.random.default_rng(seed)
    made: list[Tokens] = []
    for at in range(count):
        pool = f"pool-{at % 4}"
        prompt, response = chance.integers(0, 2**32, (2, TOKENS), dtype=np.uint32)
        response[20 : 20 + BLEED] = prompt[50 : 50 + BLEED]
        for kind, tenant, hashes in (
            (Kind.PROMPT, f"a{at % 3}", prompt),
            (Kind.RESPONSE, f"b{at % 5}", response),
        ):
            place = 2 * at if kind is Kind.PROMPT else 2 * (at + lag) + 1
            began = start_ms + place * STEP_MS
            made.append(
                Tokens(
                    tenant=TenantId(tenant),
                    request_id=RequestId(f"{kind.value}-{at}"),
                    kv_pool=PoolId(pool),
                    engine=EngineId(pool),
                    model="m",
                    kind=kind,
                    started_at_ms=began,
                    ended_at_ms=began,
                    token_hashes=hashes,
                )
            )
    return sorted(made, key=lambda one: one.started_at_ms)
