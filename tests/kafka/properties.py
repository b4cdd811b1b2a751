"""The configuration of one Kafka node that is broker and controller at once (KRaft)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from tests.kafka.security import Security

HOST: Final = "127.0.0.1"

BASIC: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "auto.create.topics.enable": "false",
    "num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "broker.session.timeout.ms": "3000",  # 9 s otherwise before a killed node may serve again
    "broker.heartbeat.interval.ms": "500",
    "log.cleaner.dedupe.buffer.size": "8388608",  # 128 MB otherwise, a quarter of the heap
}
"""What differs from Kafka's defaults: one node, little memory, members that may die quickly."""


class Ports(NamedTuple):
    """A port for each listener. They stay the same when the node is started again."""

    plain: int
    controller: int
    sasl_ssl: int
    ssl: int


def properties(
    ports: Ports, log_dir: Path, security: Security | None, more: Mapping[str, str]
) -> dict[str, str]:
    """Return the properties of a node; `more` wins over everything else."""
    listeners = {"PLAINTEXT": ports.plain}
    if security is not None:
        listeners |= {"SASL_SSL": ports.sasl_ssl, "SSL": ports.ssl}
    addresses = [f"{name}://{HOST}:{port}" for name, port in listeners.items()]
    return {
        **BASIC,
        "controller.quorum.voters": f"1@{HOST}:{ports.controller}",
        "listeners": ",".join([*addresses, f"CONTROLLER://{HOST}:{ports.controller}"]),
        "advertised.listeners": ",".join(addresses),
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,"
        + ",".join(f"{name}:{name}" for name in listeners),
        "log.dirs": str(log_dir),
        **(_secured(security) if security is not None else {}),
        **more,
    }


def _secured(security: Security) -> dict[str, str]:
    modules = "org.apache.kafka.common.security"
    user, password = security.user, security.password
    plain = f'{modules}.plain.PlainLoginModule required user_{user}="{password}";'
    scram = f"{modules}.scram.ScramLoginModule required;"
    return {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": plain,
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": scram,
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": scram,
        "listener.name.ssl.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(security.server_file),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(security.ca_file),
    }
