"""docs/streaming.md lists the topics that are made, with the retention that each is made with."""

import re

from ingest.kafka_settings import KafkaSettings, RetentionSettings
from ingest.topics import topic_names, topic_specs
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "streaming.md").read_text(encoding="utf-8")


def rows() -> list[tuple[list[str], str]]:
    """Return the topics of each row of the table, and what it says of how long they are kept."""
    head = r"^\| topic \| partition \| kept \| what \|\n\|[-|]+\|\n"
    (table,) = re.findall(head + r"(.*?)^$", PAGE, re.M | re.S)
    cells = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return [(re.findall(r"`([^`]+)`", first), kept) for first, _, kept, *_ in cells]


def test_every_topic_stands_in_the_table_once_and_none_that_does_not_exist() -> None:
    listed = [topic for topics, _ in rows() for topic in topics]
    assert sorted(f"p.{topic}" for topic in listed) == sorted(topic_names("p"))


def test_each_topic_is_kept_as_the_table_says() -> None:
    retention = {name: 60_000 * (n + 1) for n, name in enumerate(RetentionSettings.model_fields)}
    made = topic_specs(KafkaSettings(topic_prefix="p", retention=RetentionSettings(**retention)))
    told = {
        f"p.{topic}": (f"`kafka.retention.{name}`", "compacted" in kept)
        for topics, kept in rows()
        for topic in topics
        for name in re.findall(r"`kafka\.retention\.(\w+)`", kept)
    }
    names = {value: f"`kafka.retention.{name}`" for name, value in retention.items()}
    assert told == {one.name: (names[one.retention_ms], "compact" in one.cleanup) for one in made}


def test_topics_of_the_first_rows_have_as_many_partitions_as_each_other() -> None:
    assert "The first four rows need the same number of partitions" in PAGE
    first = [topic for topics, _ in rows()[:4] for topic in topics]
    assert sorted(f"p.{topic}" for topic in first) == sorted(topic_names("p").alike)
