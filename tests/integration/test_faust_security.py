"""The worker on a cluster that asks who it is: by password over TLS, and by certificate."""

from pathlib import Path

import pytest

from tests.kafka.cluster import KafkaServer
from tests.kafka.security import Security
from tests.streams.cluster import Sent, make_stream, now_ms, pairs
from tests.streams.process import until, worker


@pytest.mark.parametrize("how", ["PLAIN", "SCRAM-SHA-512", "certificate"])
def test_a_worker_gets_in_and_says_no_secret(
    secure_kafka: KafkaServer,
    kafka_security: Security,
    topic_prefix: str,
    tmp_path: Path,
    *,
    how: str,
) -> None:
    stream = make_stream(secure_kafka.bootstrap, topic_prefix)
    sent = [Sent(0, now_ms() - 1000 + i, "k") for i in range(5)]
    stream.send(sent)
    files = kafka_security
    security = {"ca_file": str(files.ca_file)}
    if how == "certificate":
        address = secure_kafka.ssl
        security |= {"protocol": "SSL", "cert_file": str(files.cert_file)}
        security |= {"key_file": str(files.key_file)}
    else:
        address = secure_kafka.sasl_ssl
        security |= {"protocol": "SASL_SSL", "sasl_mechanism": how, "username": files.user}
        security |= {"password_file": str(files.password_file)}
    arguments = stream.arguments(bootstrap=address, security=security)
    with worker(arguments, tmp_path / "log") as one:
        until(lambda: set(stream.found()) == pairs(sent))
        assert one.stop() == 0
    assert files.password not in (tmp_path / "log").read_text()
