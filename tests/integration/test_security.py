"""A cluster that asks who we are: what gets in, what does not, and that the error says why."""

import logging
from pathlib import Path

import pytest

from detector.errors import BrokerError
from ingest.broker import Message, TopicPartition
from ingest.kafka_admin import KafkaAdmin
from ingest.kafka_io import KafkaPublisher, KafkaReader
from ingest.kafka_settings import KafkaSettings, SecuritySettings
from ingest.key_file import new_secret
from ingest.topics import topic_specs
from tests.e2e.program import run
from tests.kafka.cluster import KafkaServer
from tests.kafka.security import Security

WAIT_MS = 2_000
"""Enough for four attempts to connect; the client tries until its time is over."""


def settings(address: str, **security: object) -> KafkaSettings:
    return KafkaSettings(
        bootstrap_servers=address,
        connect_timeout_ms=WAIT_MS,
        partitions=1,
        security=SecuritySettings.model_validate(
            {key: str(value) for key, value in security.items()}
        ),
    )


def password(files: Security, mechanism: str, **changes: object) -> dict[str, object]:
    return {
        "protocol": "SASL_SSL",
        "sasl_mechanism": mechanism,
        "username": files.user,
        "password_file": files.password_file,
        "ca_file": files.ca_file,
        **changes,
    }


def certificate(files: Security, **changes: object) -> dict[str, object]:
    names = ("ca_file", "cert_file", "key_file")
    return {"protocol": "SSL", **{name: getattr(files, name) for name in names}, **changes}


def round_trip(given: KafkaSettings) -> None:
    """Make the topics, publish and read with these settings."""
    with KafkaAdmin(given) as admin:
        admin.create(topic_specs(given))
    topic = f"{given.topic_prefix}.findings"
    publisher = KafkaPublisher(given)
    offset = publisher.send(Message(topic, b"value", b"key")).result(timeout=10)
    publisher.close()
    reader = KafkaReader(given)
    reader.assign({TopicPartition(topic, 0): offset})
    records = reader.poll(10)
    reader.close()
    assert [record.value for record in records] == [b"value"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password_over_tls_gets_in(
    secure_kafka: KafkaServer, kafka_security: Security, mechanism: str
) -> None:
    round_trip(settings(secure_kafka.sasl_ssl, **password(kafka_security, mechanism)))


def test_a_client_certificate_gets_in(secure_kafka: KafkaServer, kafka_security: Security) -> None:
    round_trip(settings(secure_kafka.ssl, **certificate(kafka_security)))


@pytest.mark.parametrize(
    ("mechanism", "end"), [("PLAIN", KafkaAdmin), ("SCRAM-SHA-512", KafkaReader)]
)
def test_a_wrong_password_is_told_and_not_shown(  # noqa: PLR0917 - fixtures come by name
    secure_kafka: KafkaServer,
    kafka_security: Security,
    mechanism: str,
    end: type[KafkaAdmin] | type[KafkaReader],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    wrong = tmp_path / "password"
    wrong.touch(mode=0o600)
    wrong.write_text("wrong-password\n")
    given = settings(
        secure_kafka.sasl_ssl, **password(kafka_security, mechanism, password_file=wrong)
    )
    with caplog.at_level(logging.DEBUG), pytest.raises(BrokerError) as caught:
        end(given)
    assert "Bootstrap" in caplog.text  # the client has logged
    assert caught.value.what in (
        "the cluster refuses the user name or the password",
        "the cluster ends the connection while we log in",
    )
    assert "password_file" in caught.value.hint
    assert "wrong-password" not in f"{caught.value!r} {caplog.text}"


def test_a_worker_with_a_wrong_password_says_so(
    secure_kafka: KafkaServer, kafka_security: Security, tmp_path: Path
) -> None:
    """Its own log is quiet about the client, yet the reason reaches the error."""
    new_secret(tmp_path / "key")
    wrong = tmp_path / "password"
    wrong.touch(mode=0o600)
    wrong.write_text("wrong-password\n")
    security = password(kafka_security, "PLAIN", password_file=wrong)
    given = {
        "kafka.bootstrap_servers": secure_kafka.sasl_ssl,
        "kafka.connect_timeout_ms": f"{WAIT_MS}ms",
        **{f"kafka.security.{name}": value for name, value in security.items()},
    }
    flags = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    done = run("run", "worker", "--key-file", tmp_path / "key", *flags)
    assert done.returncode == 2
    assert b"user name or the password" in done.stderr or b"while we log in" in done.stderr
    assert b"wrong-password" not in done.stderr


REFUSED = {
    "another authority": "is not signed by an authority that we trust",
    "no certificate": "does not accept our client certificate, or misses one",
    "not encrypted": "does not seem to speak what kafka.security.protocol says",
    "encrypted where it is plain": "does not seem to speak what kafka.security.protocol says",
}


@pytest.mark.parametrize(
    ("case", "end"),
    list(zip(REFUSED, [KafkaPublisher, KafkaReader, KafkaAdmin, KafkaPublisher], strict=True)),
)
def test_what_does_not_get_in_says_why(
    secure_kafka: KafkaServer,
    kafka_security: Security,
    case: str,
    end: type[KafkaPublisher] | type[KafkaReader] | type[KafkaAdmin],
) -> None:
    files = kafka_security
    given: dict[str, tuple[str, dict[str, object]]] = {
        "another authority": (secure_kafka.ssl, certificate(files, ca_file=files.other_ca_file)),
        "no certificate": (secure_kafka.ssl, {"protocol": "SSL", "ca_file": files.ca_file}),
        "not encrypted": (secure_kafka.ssl, {"protocol": "PLAINTEXT"}),
        "encrypted where it is plain": (secure_kafka.bootstrap, certificate(files)),
    }
    address, security = given[case]
    with pytest.raises(BrokerError, match=REFUSED[case]) as caught:
        end(settings(address, **security))
    assert caught.value.where == address
    assert caught.value.hint


def test_a_name_that_the_certificate_does_not_hold_is_refused(
    secure_kafka: KafkaServer, kafka_security: Security
) -> None:
    port = secure_kafka.ssl.rpartition(":")[2]
    with pytest.raises(BrokerError, match="for another host name"):
        KafkaReader(settings(f"localhost:{port}", **certificate(kafka_security)))
