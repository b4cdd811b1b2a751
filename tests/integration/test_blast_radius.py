"""`bleedwatch blast-radius --kafka` on a real cluster: what it retains is counted exactly."""

import json
from pathlib import Path

import pyarrow.parquet as pq

from detector.streaming.outgoing import finding_message
from exporters.store.blast_radius import Scope
from ingest.broker import Message
from ingest.kafka_io import KafkaPublisher
from ingest.kafka_settings import KafkaSettings
from ingest.topics import topic_names
from tests.e2e.program import Capture, call
from tests.store.test_blast_radius import FINDINGS, REQUESTS, brute_force
from tests.store.test_from_topics import row
from tests.store.topics import packed

TIMES = ("--from", "1970-01-01", "--until", "1970-01-01T00:01:40")


def send(settings: KafkaSettings) -> None:
    names = topic_names(settings.topic_prefix)
    publisher = KafkaPublisher(settings)
    try:
        for begin in range(0, len(REQUESTS), 50):
            for message in packed(map(row, REQUESTS[begin : begin + 50])):
                publisher.send(message._replace(topic=names.requests))
        for finding in FINDINGS:
            publisher.send(finding_message(finding, names.findings))
        publisher.send(Message(names.requests, b"no row", key=b"a"))
        publisher.flush(30)
    finally:
        publisher.close()


def test_what_the_broker_retains_is_counted_and_listed(
    kafka: str, topic_prefix: str, tmp_path: Path, capsys: Capture
) -> None:
    settings = KafkaSettings(
        bootstrap_servers=kafka, topic_prefix=topic_prefix, partitions=3, replication_factor=1
    )
    flags = [
        word
        for name in ("bootstrap_servers", "topic_prefix", "partitions", "replication_factor")
        for word in ("--set", f"kafka.{name}={getattr(settings, name)}")
    ]
    asked = ("blast-radius", "--kafka", "--kv-pool", "a", *TIMES, *flags)
    code, _, err = call(capsys, *asked)
    assert (code, "there is no such topic" in err) == (2, True)
    assert call(capsys, "topics", "create", *flags)[0] == 0
    send(settings)

    def counted(*more: str) -> dict[str, int]:
        code, out, err = call(capsys, *asked, *more, "-o", "jsonl")
        assert code == 0, err
        assert "1 records could not be read" in err
        lines = (json.loads(line) for line in out.splitlines())
        return {line["tenant"]: line["requests"] for line in lines}

    whole = Scope("a", 0, 100_000)
    assert counted() == brute_force(whole)
    assert counted("--longer-than", "1000", "--engine", "e1") == brute_force(
        whole._replace(longer_than=1000, engine="e1")
    )
    assert counted("--contradicted") == brute_force(whole._replace(contradicted=True))
    file = tmp_path / "affected.parquet"
    assert call(capsys, *asked, "--requests", "--file", file)[0] == 0
    listed = pq.read_table(file)
    assert listed.num_rows == sum(brute_force(whole).values())
    assert set(listed.column("kv_pool").to_pylist()) == {"a"}
