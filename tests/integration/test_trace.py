"""`bleedwatch trace` on a real cluster: a source of hours ago is found in the sequences topic."""

import json
import time
from pathlib import Path

from detector.model import Sequence
from detector.sketch.token_table import Secret
from ingest.broker import Message
from ingest.envelope import pack
from ingest.kafka_io import KafkaPublisher
from ingest.kafka_settings import KafkaSettings
from ingest.key_file import new_secret
from ingest.schema_sequence import to_record
from ingest.sealing import KeyRing
from ingest.topics import topic_names
from tests.e2e.program import Capture, call
from tests.unit.sequences import join, prompt, response, text

HOUR_S = 3_600


def day(key_id: str) -> list[Sequence]:
    now_s = time.time() - 60
    secret = text(1, 40)
    filler = [
        prompt("c", f"{pool} {at}", now_s - at, text(100 + at, 200), pool=pool, key_id=key_id)
        for at in range(60, 0, -1)
        for pool in ("p", "q", "r")
    ]
    source = prompt("a", "old", now_s - 10 * HOUR_S, join(text(3, 12), secret), key_id=key_id)
    sink = response("b", "sink", now_s, join(text(2, 30), secret), key_id=key_id)
    return [source, *filler, sink]


def send(secret: Secret, settings: KafkaSettings) -> None:
    ring = KeyRing.of(secret)
    publisher = KafkaPublisher(settings)
    try:
        for one in day(ring.key_id):
            value = pack([to_record(one)], ring)
            topic = topic_names(settings.topic_prefix).sequences
            publisher.send(Message(topic, value, one.kv_pool.encode()))
        publisher.flush(30)
    finally:
        publisher.close()


def test_the_source_is_named(
    kafka: str, topic_prefix: str, tmp_path: Path, capsys: Capture
) -> None:
    secret = new_secret(tmp_path / "key")
    settings = KafkaSettings(
        bootstrap_servers=kafka, topic_prefix=topic_prefix, partitions=3, replication_factor=1
    )
    flags = [
        word
        for name in ("bootstrap_servers", "topic_prefix", "partitions", "replication_factor")
        for word in ("--set", f"kafka.{name}={getattr(settings, name)}")
    ]
    assert call(capsys, "topics", "create", *flags)[0] == 0
    send(secret, settings)
    code, out, err = call(
        capsys, "trace", "sink", *flags, "--key-file", tmp_path / "key", "-o", "json"
    )
    assert code == 1, err
    traced = json.loads(out)
    assert [one["party"]["request_id"] for one in traced["sources"]] == ["old"]
    assert traced["is_complete"]
    assert traced["scanned"]["sequences"] == 62
    other = tmp_path / "other"
    new_secret(other)
    code, _, err = call(capsys, "trace", "sink", *flags, "--key-file", other)
    assert code == 2
    assert "sealed under a secret that is not here" in err
    assert "sealing.accepted_key_files" in err
