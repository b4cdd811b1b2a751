"""What one node cannot show: replicas, brokers that make topics, settings that clash."""

import pytest
from pydantic import ValidationError

from detector.settings import CommonnessSettings, DetectionSettings, WindowSettings
from ingest.kafka_admin import ClusterState, TopicState
from ingest.kafka_settings import KafkaSettings, RetentionSettings
from ingest.topic_check import Mismatch, check_topics, duration
from ingest.topics import topic_names, topic_specs

ONE = ClusterState(brokers=1, auto_create=False)
FIVE = ClusterState(brokers=5, auto_create=False)


def right(settings: KafkaSettings, *, replicas: int = 1) -> dict[str, TopicState]:
    """Return topics as `topics create` makes them."""
    return {
        spec.name: TopicState(spec.name, spec.partitions, replicas, spec.configs)
        for spec in topic_specs(settings)
    }


def check(
    settings: KafkaSettings,
    cluster: ClusterState = ONE,
    *,
    replicas: int = 1,
    detection: DetectionSettings | None = None,
) -> list[Mismatch]:
    states = right(settings, replicas=replicas)
    return check_topics(settings, detection or DetectionSettings(), states, cluster)


def test_the_defaults_are_right() -> None:
    assert check(KafkaSettings()) == []
    assert check(KafkaSettings(), FIVE, replicas=3) == []


@pytest.mark.parametrize(("wish", "level"), [(None, "warning"), (3, "error")])
def test_fewer_replicas_than_wanted(wish: int | None, level: str) -> None:
    found = check(KafkaSettings(replication_factor=wish), FIVE, replicas=1)
    assert {mismatch.level for mismatch in found} == {level}
    assert len(found) == 9
    assert found[0].problem.startswith("1 of 3 replicas")


def test_a_cluster_of_two_is_asked_for_two_replicas() -> None:
    two = ClusterState(brokers=2, auto_create=False)
    assert check(KafkaSettings(), two, replicas=2) == []
    assert check(KafkaSettings(), two, replicas=1)[0].problem.startswith("1 of 2 replicas")


def test_a_cluster_that_makes_topics_is_warned_of() -> None:
    cluster = ClusterState(brokers=1, auto_create=True)
    (found,) = check(KafkaSettings(), cluster)
    assert (found.level, found.topic) == ("warning", "bleedwatch.*")
    assert "auto.create.topics.enable=false" in found.next_step
    missing = check_topics(KafkaSettings(), DetectionSettings(), {}, cluster)
    assert "may make it wrong" in missing[0].problem


def test_settings_that_keep_less_than_the_detection_needs() -> None:
    long = DetectionSettings(
        window=WindowSettings(length_ms=7_200_000),
        commonness=CommonnessSettings(horizon_ms=2 * 86_400_000),
    )
    settings = KafkaSettings(retention=RetentionSettings(inputs_ms=3_600_000))
    found = check(settings, detection=long)
    names = topic_names("bleedwatch")
    assert {mismatch.topic for mismatch in found} == {*names.inputs, names.bands, names.shingles}
    assert {mismatch.level for mismatch in found} == {"error"}


def test_errors_come_first() -> None:
    settings = KafkaSettings()
    states = right(settings)
    del states["bleedwatch.bands"]
    cluster = ClusterState(brokers=1, auto_create=True)
    found = check_topics(settings, DetectionSettings(), states, cluster)
    assert [mismatch.level for mismatch in found] == ["error", "warning"]


def test_names_are_made_of_the_prefix() -> None:
    names = topic_names("acme.eu")
    assert names.engine_events == "acme.eu.engine-events"
    assert names.inputs == ("acme.eu.sequences", "acme.eu.runtime", "acme.eu.engine-events")
    assert len(set(names)) == 9


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(1, "1 ms"), (90_000, "90 s"), (960_000, "16 min"), (129_600_000, "36 h"), (None, "for ever")],
)
def test_durations_are_said_in_the_largest_whole_unit(milliseconds: int | None, text: str) -> None:
    assert duration(milliseconds) == text


@pytest.mark.parametrize("prefix", ["acme.", ".acme", "a..b", ".", ""])
def test_a_prefix_whose_names_would_have_two_dots_is_refused(prefix: str) -> None:
    with pytest.raises(ValidationError):
        KafkaSettings(topic_prefix=prefix)
    assert KafkaSettings(topic_prefix="acme.eu-1").topic_prefix == "acme.eu-1"
