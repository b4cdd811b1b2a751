"""`bleedwatch commonness` on a real cluster: what is loaded is told by the owner and shown."""

import json
import os
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from detector.config.root import Settings
from detector.index.selection import sampling_of
from detector.index.shared_memory import SharedMemory
from detector.sketch.tag_keys import TagKeys
from detector.sketch.token_table import Keys
from detector.streaming.commonness_feed import CommonnessFeed
from detector.streaming.exchange import Exchange
from ingest.kafka_io import KafkaPublisher, KafkaReader
from ingest.kafka_settings import KafkaSettings
from ingest.key_file import load_secret, new_secret
from tests.e2e.program import Capture, call

PARTITIONS = 2
PHRASE = list(range(500, 540))
SHINGLES = len(PHRASE) - 9


@pytest.fixture
def flags(kafka: str, topic_prefix: str, tmp_path: Path, capsys: Capture) -> list[str]:
    """Return the flags that lead to topics of a test's own."""
    new_secret(tmp_path / "key")
    settings = {
        "bootstrap_servers": kafka,
        "topic_prefix": topic_prefix,
        "partitions": str(PARTITIONS),
        "replication_factor": "1",
    }
    made = [word for name in settings for word in ("--set", f"kafka.{name}={settings[name]}")]
    code, _, err = call(capsys, "topics", "create", *made)
    assert code == 0, err
    return [*made, "--key-file", str(tmp_path / "key")]


def history(path: Path, tenants: Iterable[str]) -> Path:
    rows = [
        {
            "request_id": f"r-{tenant}", "ts": at, "ts_end": at + 1, "node": "e",
            "tenant": tenant, "model": "m", "prompt_ids": PHRASE, "response_ids": [1, 2],
        }
        for at, tenant in enumerate(tenants)
    ]  # fmt: skip
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    return path


def own_everything(kafka: str, prefix: str, keys: Keys) -> dict[str, int]:
    """Be the worker that owns all ranges until all is told; return what could not be read."""
    settings = Settings(kafka=KafkaSettings(bootstrap_servers=kafka, topic_prefix=prefix))
    memory = SharedMemory(settings.detection.commonness, TagKeys(keys.tag_key))
    exchange = Exchange(
        memory, settings.detection.commonness, key_id=keys.key_id,
        sampling=sampling_of(settings.detection.index), ranges=PARTITIONS, prefix=prefix,
        writer=os.urandom(8),
    )  # fmt: skip
    reader, publisher = KafkaReader(settings.kafka), KafkaPublisher(settings.kafka)
    feed = CommonnessFeed(reader, exchange)
    assert feed.start(timeout_s=30)
    for partition in range(PARTITIONS):
        feed.own(partition)
    assert feed.read_up(timeout_s=30)
    for message in exchange.messages():
        publisher.send(message)
    publisher.flush(30)
    assert feed.read_up(timeout_s=30)
    assert feed.behind() == 0
    feed.close()
    publisher.close()
    return exchange.bad_records


def test_what_is_loaded_is_told_and_shown(
    kafka: str, topic_prefix: str, flags: list[str], tmp_path: Path, capsys: Capture
) -> None:
    log = history(tmp_path / "history.jsonl", "abc")
    code, _, err = call(capsys, "commonness", "load", log, *flags)
    assert code == 0, err
    assert f"3 requests read, {3 * SHINGLES} shingles told" in err
    assert not own_everything(kafka, topic_prefix, load_secret(tmp_path / "key").keys())
    code, out, err = call(capsys, "commonness", "show", *flags, "-o", "json")
    assert code == 0, err
    counts = {row["what"]: row["count"] for row in json.loads(out)}
    assert counts["told as shared by several tenants"] == 3 * SHINGLES
    assert counts["told as tainted"] == 0


def test_without_a_key_file_it_says_what_to_give(flags: list[str], capsys: Capture) -> None:
    without = flags[: flags.index("--key-file")]
    code, _, err = call(capsys, "commonness", "show", *without)
    assert code == 2
    assert "--key-file" in err
