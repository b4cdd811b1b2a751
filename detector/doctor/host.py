"""Checks of what every process needs: the secret, the cluster and its topics."""

from collections.abc import Iterator

from detector.doctor.facts import Facts
from detector.doctor.verdicts import Level, Verdict
from detector.errors import BrokerError, KeyFileError, SettingsError
from ingest.http_publisher import HttpPublisher
from ingest.kafka_admin import KafkaAdmin
from ingest.key_file import load_secret
from ingest.topic_check import check_topics
from ingest.topics import topic_specs


def key_file(facts: Facts) -> Iterator[Verdict]:
    """The secret is there, readable by its owner alone, and random."""
    path = facts.settings.key_file
    if path is None:
        yield Verdict(
            Level.ERROR,
            "key_file",
            "no secret is set: sidecars and workers cannot start",
            "bleedwatch key new PATH makes one; set key_file to it",
        )
        return
    try:
        key_id = load_secret(path).keys().key_id
    except KeyFileError as error:
        yield Verdict(Level.ERROR, error.where, error.what, error.hint)
        return
    yield Verdict(Level.OK, path, f"for its owner only; key id {key_id}, to be the same everywhere")


def topics(facts: Facts) -> Iterator[Verdict]:
    """The cluster answers, and its topics are as they must be; nothing where none is used."""
    if facts.settings.http.url is not None:
        return
    kafka = facts.settings.kafka
    servers = ", ".join(kafka.servers)
    specs = topic_specs(kafka)
    try:
        with KafkaAdmin(kafka) as admin:
            states = admin.topics(spec.name for spec in specs)
            mismatches = check_topics(kafka, facts.settings.detection, states, admin.cluster())
    except (BrokerError, SettingsError) as error:
        yield Verdict(Level.ERROR, error.where or servers, error.what, error.hint)
        return
    yield Verdict(Level.OK, servers, f"answers; {len(states)} of {len(specs)} topics are there")
    for one in mismatches:
        level = Level.ERROR if one.level == "error" else Level.WARNING
        yield Verdict(level, one.topic, one.problem, one.next_step)


def receiver(facts: Facts) -> Iterator[Verdict]:
    """What takes records in place of a cluster answers; nothing where there is a cluster."""
    http = facts.settings.http
    if http.url is None:
        return
    try:
        HttpPublisher(http).close()
    except (BrokerError, SettingsError) as error:
        yield Verdict(Level.ERROR, error.where or http.url, error.what, error.hint)
        return
    yield Verdict(Level.OK, http.url, "answers; no Kafka is used")
