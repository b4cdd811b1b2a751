"""The broker of a test run: a Kafka node, or the cluster that BLEEDWATCH_TEST_KAFKA names.

`kafka` and `secure_kafka` start when the first test asks for them and end with the run. A machine
without Java or Maven fails the tests that need them, with what to install: they are never skipped.
"""

import os
import uuid
from collections.abc import Iterator

import pytest

from tests.kafka.cluster import KafkaServer, running
from tests.kafka.security import Security, make_security

VARIABLE = "BLEEDWATCH_TEST_KAFKA"


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the host:port of a cluster that all tests share: use topics of `topic_prefix`."""
    given = os.environ.get(VARIABLE)
    if given:
        yield given
        return
    with running(tmp_path_factory.mktemp("kafka")) as server:
        yield server.bootstrap


@pytest.fixture
def topic_prefix() -> str:
    """Give a prefix of topic names that no other test uses."""
    return f"test-{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def kafka_security(tmp_path_factory: pytest.TempPathFactory) -> Security:
    """Give the certificates and the password that `secure_kafka` accepts."""
    return make_security(tmp_path_factory.mktemp("security"))


@pytest.fixture(scope="session")
def secure_kafka(
    tmp_path_factory: pytest.TempPathFactory, kafka_security: Security
) -> Iterator[KafkaServer]:
    """Give a node that also listens with SASL_SSL (PLAIN, SCRAM) and with client certificates."""
    with running(tmp_path_factory.mktemp("secure-kafka"), security=kafka_security) as server:
        yield server
