"""Settings of sending over HTTP, for installations without Kafka.

Apart from the publisher, so that reading the settings loads nothing else.
"""

from urllib.parse import urlsplit

from pydantic import Field, field_validator

from detector.settings import Positive, Section


class HttpSettings(Section):
    """Where a sidecar sends in place of Kafka: a `bleedwatch run all --listen`."""

    url: str | None = Field(
        None, description="As in `https://monitor:9466`; unset: messages go to Kafka."
    )
    token_file: str | None = Field(
        None, description="File whose first line is the receiver's `push.token_file`'s."
    )
    ca_file: str | None = Field(
        None, description="PEM file of the authorities to trust; unset: those of the system."
    )
    timeout_ms: Positive = Field(
        10_000, description="How long an answer is waited for before a request has failed."
    )
    in_flight_bytes: Positive = Field(
        64 * 2**20, description="Bytes sent and not yet acknowledged before sending waits."
    )

    @field_validator("url")
    @classmethod
    def _is_plain(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("must begin with http:// or https:// and name a host")
        if parts.username is not None or parts.query or parts.path not in {"", "/"}:
            raise ValueError("must have no user, path or query; a token belongs into token_file")
        return value
