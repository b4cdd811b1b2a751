"""`bleedwatch audit` on a real cluster: the topic's events, and only those since a time."""

import json
import time

from ingest.broker import Message
from ingest.kafka_io import KafkaPublisher
from ingest.kafka_settings import KafkaSettings
from ingest.record_batches import pack_clear
from ingest.schema_records import EventKind
from ingest.topics import topic_names
from tests.e2e.program import Capture, call
from tests.unit.runtime_records import event


def test_what_was_before_is_left_out(kafka: str, topic_prefix: str, capsys: Capture) -> None:
    given = {"bootstrap_servers": kafka, "topic_prefix": topic_prefix, "partitions": 2}
    settings = KafkaSettings(**given, replication_factor=1)
    flags = [word for name, value in given.items() for word in ("--set", f"kafka.{name}={value}")]
    flags += ["--set", "kafka.replication_factor=1"]
    assert call(capsys, "topics", "create", *flags)[0] == 0
    now_s = time.time()
    publisher = KafkaPublisher(settings)
    try:
        for hours in (30, 5, 1):
            one = event(
                EventKind.ALLOCATED, now_s - hours * 3_600, tenant="acme", block=f"b{hours}",
                request_id=f"r{hours}", created_at_ms=1,
            )  # fmt: skip
            topic = topic_names(topic_prefix).engine_events
            publisher.send(Message(topic, pack_clear([one]), b"p"))
        publisher.flush(30)
    finally:
        publisher.close()

    def audited(*more: str) -> list[str]:
        code, out, err = call(capsys, "audit", "--tenant", "acme", *flags, *more, "-o", "json")
        assert code == 0, err
        return [one["request_id"] for one in json.loads(out)["events"]]

    assert audited() == ["r30", "r5", "r1"]
    assert audited("--since", "6h") == ["r5", "r1"]
    assert audited("--since", "10m") == []
