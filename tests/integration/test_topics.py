"""`bleedwatch topics` on a real cluster: it makes what is needed and explains what is wrong."""

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from detector.settings import DetectionSettings
from ingest.kafka_admin import KafkaAdmin
from ingest.kafka_settings import KafkaSettings
from ingest.topic_check import Mismatch, check_topics
from ingest.topics import TopicNames, topic_names
from tests.e2e.program import Capture, call, run

PARTITIONS = 2


class Cluster:
    """The topics of one prefix, made by the program; `admin` is somebody else who changes them."""

    def __init__(self, address: str, prefix: str, capture: Capture) -> None:
        self.address = address
        self.prefix = prefix
        self.names: TopicNames = topic_names(prefix)
        self.admin = KafkaAdminClient(bootstrap_servers=address)
        self._capture = capture

    def topics(self, command: str, **changes: str) -> tuple[int, Any, str]:
        """Run the command; return exit code, document and messages."""
        given = {
            "bootstrap_servers": self.address,
            "topic_prefix": self.prefix,
            "partitions": str(PARTITIONS),
            "replication_factor": "1",
            **changes,
        }
        flags = [word for name in given for word in ("--set", f"kafka.{name}={given[name]}")]
        code, out, err = call(self._capture, "topics", command, "-o", "json", *flags)
        return code, json.loads(out) if out else None, err

    def alter(self, topic: str, **configs: str) -> None:
        named = {key.replace("_", "."): value for key, value in configs.items()}
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, named)
        assert self.admin.alter_configs([resource]) == {"topic": {topic: "OK"}}
        self._await(topic, named)

    def _await(self, topic: str, configs: dict[str, str]) -> None:
        """Wait until the broker knows what its controller has accepted."""
        asked = ConfigResource(ConfigResourceType.TOPIC, topic)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            found = self.admin.describe_configs([asked], config_filter="all")["topic"][topic]
            if all(found[key]["value"] == value for key, value in configs.items()):
                return
        pytest.fail(f"{topic} did not take {configs}")

    def grow(self, names: Iterable[str], count: int) -> None:
        """Give topics more partitions, and wait until the broker knows."""
        grown = dict.fromkeys(names, count)
        self.admin.create_partitions(grown)
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            found = self.admin.describe_topics(list(grown))
            if all(len(topic["partitions"]) == count for topic in found):
                return
        pytest.fail(f"no {count} partitions in {list(grown)}")

    def check(self) -> list[Mismatch]:
        """Do what `topics check` does, without the time that a process takes."""
        settings = KafkaSettings(
            bootstrap_servers=self.address,
            topic_prefix=self.prefix,
            partitions=PARTITIONS,
            replication_factor=1,
        )
        with KafkaAdmin(settings) as admin:
            states = admin.topics(self.names)
            return check_topics(settings, DetectionSettings(), states, admin.cluster())


@pytest.fixture
def cluster(kafka: str, topic_prefix: str, capsys: Capture) -> Iterator[Cluster]:
    cluster = Cluster(kafka, topic_prefix, capsys)
    yield cluster
    there = [name for name in cluster.admin.list_topics() if name.startswith(f"{topic_prefix}.")]
    if there:
        cluster.admin.delete_topics(there)
    cluster.admin.close()


def test_what_create_makes_is_what_check_asks_for(cluster: Cluster) -> None:
    code, missing, _ = cluster.topics("check")
    assert code == 1
    assert {row["topic"] for row in missing} == set(cluster.names)
    assert {row["problem"] for row in missing} == {"there is no such topic"}

    code, made, errors = cluster.topics("create")
    assert (code, errors) == (0, "")
    assert [row["topic"] for row in made] == list(cluster.names)
    assert {(row["state"], row["partitions"], row["replicas"]) for row in made} == {
        ("created", 2, 1)
    }

    code, problems, _ = cluster.topics("check")
    assert (code, problems) == (0, [])


def test_create_can_be_repeated_and_leaves_what_exists(cluster: Cluster) -> None:
    cluster.topics("create")
    cluster.admin.delete_topics([cluster.names.bands])
    cluster.alter(cluster.names.findings, retention_ms="1000")
    code, rows, errors = cluster.topics("create")
    states = {row["topic"]: (row["state"], row["retention_ms"]) for row in rows}
    assert states[cluster.names.bands] == ("created", 3_600_000)
    assert states[cluster.names.findings] == ("exists", 1000)
    assert code == 1
    assert "keeps records 1 s" in errors


MISTAKES = {
    "sequences kept for less than a window": (
        "sequences", {"retention_ms": "60000"}, "error", "less than the 16 min that the detection"
    ),
    "sequences kept for less than the look-back": (
        "sequences", {"retention_ms": "7200000"}, "error", "less than the 1 d of the settings"
    ),
    "sequences kept for ever": (
        "sequences", {"retention_ms": "-1"}, "warning", "keeps records for ever"
    ),
    "sequences bounded by size": (
        "sequences", {"retention_bytes": "1000000"}, "warning", "may delete records early"
    ),
    "inputs compacted": (
        "runtime", {"cleanup_policy": "compact"}, "error", "only the newest stays"
    ),
    "commonness not compacted": (
        "commonness", {"cleanup_policy": "delete"}, "error", "is not compacted"
    ),
    "commonness never deleted": (
        "commonness", {"cleanup_policy": "compact"}, "warning", "grows without end"
    ),
    "digests kept for less than the horizon": (
        "shingles", {"retention_ms": "3600000"}, "error", "less than the 1 d that the detection"
    ),
    "broker's time instead of the sender's": (
        "engine_events", {"message_timestamp_type": "LogAppendTime"}, "error", "time of sending"
    ),
    "small messages only": (
        "sequences", {"max_message_bytes": "1048588"}, "error", "more than 1,048,588 bytes"
    ),
    "more replicas in sync than there are": (
        "findings", {"min_insync_replicas": "2"}, "error", "nothing is accepted"
    ),
}  # fmt: skip


def test_every_wrong_setting_is_explained_and_the_next_step_mends_it(cluster: Cluster) -> None:
    cluster.topics("create")
    for name, (field, configs, level, problem) in MISTAKES.items():
        topic = getattr(cluster.names, field)
        cluster.alter(topic, **configs)
        (found,) = cluster.check()
        assert (found.topic, found.level) == (topic, level), name
        assert problem in found.problem, name
        key, _, value = found.next_step.rpartition(" ")[2].partition("=")
        assert f"--entity-name {topic} --add-config {key}" in found.next_step
        cluster.alter(topic, **{key: value.strip("[]")})
        assert cluster.check() == [], name


@pytest.mark.parametrize(
    ("kept_ms", "errors"), [("43200000", 1), ("-1", 0)], ids=["error", "warning"]
)
def test_only_an_error_makes_the_exit_code(cluster: Cluster, kept_ms: str, errors: int) -> None:
    cluster.topics("create")
    cluster.alter(cluster.names.runtime, retention_ms=kept_ms)
    code, rows, messages = cluster.topics("check")
    assert (code, len(rows)) == (errors, 1)
    assert messages == f"9 topics: {errors} errors, {1 - errors} warnings\n"


def test_inputs_with_different_partitions_are_an_error(cluster: Cluster) -> None:
    cluster.topics("create")
    cluster.grow([cluster.names.runtime], 3)
    (found,) = cluster.check()
    assert (found.topic, found.level) == (cluster.names.runtime, "error")
    assert f"3 partitions and {cluster.names.sequences} has 2" in found.problem
    assert f"--topic {cluster.names.sequences} --partitions 3" in found.next_step
    cluster.grow((name for name in cluster.names if name != cluster.names.runtime), 3)
    (found,) = cluster.check()
    assert (found.topic, found.level) == (cluster.names.sequences, "warning")
    assert "kafka.partitions=2" in found.problem


def test_what_the_settings_ask_for_and_the_cluster_lacks_is_told(cluster: Cluster) -> None:
    cluster.topics("create")
    code, rows, _ = cluster.topics("check", replication_factor="3")
    assert code == 1
    assert {row["topic"] for row in rows} == set(cluster.names)
    assert all("1 of 3 replicas" in row["problem"] for row in rows)
    code, _, errors = cluster.topics("create", replication_factor="3", topic_prefix="never")
    assert code == 2
    assert "replication factor" in errors
    assert "next: set kafka.replication_factor" in errors


def test_a_cluster_that_does_not_answer_is_told_in_one_message() -> None:
    done = run(
        "topics",
        "check",
        BLEEDWATCH_KAFKA__BOOTSTRAP_SERVERS="127.0.0.1:1",
        BLEEDWATCH_KAFKA__CONNECT_TIMEOUT_MS="1s",
    )
    assert done.returncode == 2
    lines = done.stderr.decode().splitlines()
    assert lines == [
        "error: 127.0.0.1:1: nothing listens there",
        "  next: start the broker or correct kafka.bootstrap_servers",
    ]
