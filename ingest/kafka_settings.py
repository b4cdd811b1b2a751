"""How to reach a Kafka cluster, and what its topics should be like."""

import re
from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from detector.settings import Positive, Section
from ingest.limits import MAX_MESSAGE_BYTES

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS

_TOPIC = r"[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*"
"""What Kafka allows in the name of a topic."""

_SERVER = r"[^\s,@/]+:\d{1,5}"
"""A name or an address, in brackets for IPv6, and a port; no scheme and no user."""


class SecuritySettings(Section):
    """TLS and who we are. Secrets stay in files and are never shown."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="How connections are secured, in Kafka's words."
    )
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "SCRAM-SHA-512", description="How the password is proved, with a SASL protocol."
    )
    username: str | None = Field(None, description="User name, with a SASL protocol.")
    password_file: str | None = Field(
        None, description="File with the password on its first line, unreadable for others."
    )
    ca_file: str | None = Field(
        None, description="PEM file of the authorities to trust; unset: those of the system."
    )
    cert_file: str | None = Field(
        None,
        description="PEM file of our certificate and its chain, where the cluster asks for it.",
    )
    key_file: str | None = Field(
        None, description="PEM file of its private key, without a passphrase."
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.protocol.startswith("SASL_") and not (self.username and self.password_file):
            raise ValueError(f"{self.protocol} needs username and password_file")
        if not self.protocol.startswith("SASL_") and (self.username or self.password_file):
            raise ValueError(f"{self.protocol} sends no password: use SASL_SSL, or unset both")
        tls_files = (self.ca_file, self.cert_file, self.key_file)
        if not self.protocol.endswith("SSL") and any(tls_files):
            raise ValueError(f"{self.protocol} is not encrypted: use SSL or SASL_SSL")
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file go together")
        return self


class RetentionSettings(Section):
    """How long the topics keep what."""

    inputs_ms: Positive = Field(
        DAY_MS,
        description="Sequences, runtime and engine-events: how far a look-back can reach.",
    )
    results_ms: Positive = Field(
        7 * DAY_MS,
        description="Findings, requests and dead letters: how long who reads them may be away.",
    )
    shingles_ms: Positive = Field(
        DAY_MS, description="Digests of shingles: at least detection.commonness.horizon_ms."
    )
    commonness_ms: Positive = Field(
        2 * DAY_MS,
        description="Promotions, compacted: as long as the memory of what is common lives at most.",
    )
    bands_ms: Positive = Field(
        HOUR_MS, description="Bands of responses: at least what a window needs."
    )


class KafkaSettings(Section):
    """The cluster, its topics and the patience with it."""

    bootstrap_servers: str = Field(
        "127.0.0.1:9092",
        description="Some brokers of the cluster, host:port, separated by commas.",
    )
    topic_prefix: str = Field(
        "bleedwatch",
        pattern=f"^{_TOPIC}$",
        max_length=200,
        description="Every topic's name begins with this and a dot.",
    )
    partitions: Annotated[int, Field(ge=1, le=10_000)] = Field(
        8, description="Partitions of a new topic: the most workers that can share the work."
    )
    replication_factor: Annotated[int, Field(ge=1, le=100)] | None = Field(
        None, description="Copies of a new topic's data; unset: the cluster's own default."
    )
    max_message_bytes: Annotated[int, Field(ge=1024, le=2**30)] = Field(
        MAX_MESSAGE_BYTES, description="Largest record, in topics and in what is sent."
    )
    in_flight_bytes: Positive = Field(
        64 * 2**20, description="Bytes sent and not yet acknowledged before sending waits."
    )
    linger_ms: Annotated[int, Field(ge=0, le=10_000)] = Field(
        20, description="How long a record waits for others to travel with."
    )
    connect_timeout_ms: Positive = Field(
        10_000, description="How long to try before a cluster counts as away."
    )
    delivery_timeout_ms: Annotated[int, Field(ge=1000)] = Field(
        60_000, description="How long a record is tried before its sending has failed."
    )
    session_timeout_ms: Annotated[int, Field(ge=1000)] = Field(
        30_000, description="A worker that is silent for this long loses its partitions."
    )
    retention: RetentionSettings = RetentionSettings()
    security: SecuritySettings = SecuritySettings()

    @field_validator("bootstrap_servers")
    @classmethod
    def _are_addresses(cls, value: str) -> str:
        servers = [server.strip() for server in value.split(",")]
        if not all(re.fullmatch(_SERVER, server) for server in servers):
            raise ValueError("must be host:port, several separated by commas")
        return value

    @property
    def servers(self) -> list[str]:
        """The brokers to begin with, each as host:port."""
        return [server.strip() for server in self.bootstrap_servers.split(",")]
