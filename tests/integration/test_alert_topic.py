"""Alerts on a topic of a real Kafka, and of one that is not there."""

import json
import socket
import time
from typing import Any

from kafka import KafkaAdminClient

from detector.alerting import new_outputs
from detector.config.root import Settings
from exporters.outputs.contract import Delivered, Output, Retry
from exporters.outputs.notification import Kind
from ingest.broker import TopicPartition
from ingest.kafka_io import KafkaReader
from ingest.kafka_settings import KafkaSettings
from tests.alerts.kit import NOW_MS, notification
from tests.contract.reading import collect


def output(servers: str, topic: str, **changed: Any) -> Output:
    settings = {"kind": "kafka", "name": "alerts", "topic": topic, **changed}
    (made,) = new_outputs(
        Settings.model_validate({"kafka": {"bootstrap_servers": servers}, "outputs": [settings]})
    )
    return made


def test_alerts_arrive_on_the_topic_in_order(kafka: str, topic_prefix: str) -> None:
    client = KafkaAdminClient(bootstrap_servers=kafka)
    spec = {"num_partitions": 1, "replication_factor": 1}
    client.create_topics({topic_prefix: spec}, wait_for_metadata=True)
    client.close()
    sent = [notification(), notification(Kind.RESOLVED, id="ntf-2", sequence=2)]
    to = output(kafka, topic_prefix)
    outcomes = [to.send(one, at_ms=NOW_MS) for one in sent]
    to.close()
    assert outcomes == [Delivered("offset 0"), Delivered("offset 1")]

    reader = KafkaReader(KafkaSettings(bootstrap_servers=kafka))
    reader.assign({TopicPartition(topic_prefix, 0): 0})
    records = collect(reader, 2)
    reader.close()
    assert [dict(record.headers)["webhook-id"].decode() for record in records] == [
        one.id for one in sent
    ]
    assert {record.key for record in records} == {b"inc-1"}
    types = [json.loads(record.value or b"")["type"] for record in records]
    assert types == ["incident.opened", "incident.resolved"]


def test_a_topic_that_does_not_exist_is_tried_again(kafka: str, topic_prefix: str) -> None:
    to = output(kafka, topic_prefix, timeout_ms=3_000)
    assert to.send(notification(), at_ms=NOW_MS) == Retry("the broker did not take it")
    to.close()


def test_a_cluster_that_is_away_is_tried_again_in_time() -> None:
    with socket.socket() as taken:  # bound and not listening: connections are refused
        taken.bind(("127.0.0.1", 0))
        to = output(f"127.0.0.1:{taken.getsockname()[1]}", "alerts", timeout_ms=1_500)
        began = time.monotonic()
        assert to.send(notification(), at_ms=NOW_MS) == Retry("the broker did not take it")
        assert time.monotonic() - began < 5
        to.close()
