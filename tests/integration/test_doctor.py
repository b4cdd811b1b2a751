"""The doctor on a real cluster: topics that miss are faults with a next step, made ones are not."""

from detector.config.load import load_settings
from detector.doctor import host
from detector.doctor.facts import Facts
from detector.doctor.verdicts import Level
from ingest.kafka_admin import KafkaAdmin
from ingest.topics import topic_specs


def test_a_cluster_without_and_with_topics(kafka: str, topic_prefix: str) -> None:
    given = {
        "bootstrap_servers": kafka,
        "topic_prefix": topic_prefix,
        "partitions": "2",
        "replication_factor": "1",
    }
    flags = [f"kafka.{name}={value}" for name, value in given.items()]
    settings = load_settings(environment={}, assignments=flags).settings
    answers, *missing = host.topics(Facts(settings))
    assert (answers.level, answers.subject) == (Level.OK, kafka)
    specs = topic_specs(settings.kafka)
    assert answers.found == f"answers; 0 of {len(specs)} topics are there"
    errors = {verdict.subject for verdict in missing if verdict.level is Level.ERROR}
    assert errors == {spec.name for spec in specs}
    assert all(verdict.next_step for verdict in missing)
    with KafkaAdmin(settings.kafka) as admin:
        admin.create(specs)
    assert not [one for one in host.topics(Facts(settings)) if one.level is Level.ERROR]
