"""Settings of the port of a sidecar: what may be pushed, and when engines should admit no more.

Apart from the server, so that reading the settings loads nothing else.
"""

from typing import Annotated, Self

from pydantic import Field, model_validator

from detector.addresses import is_loopback
from detector.settings import Positive, Section

_Share = Annotated[float, Field(gt=0, le=1)]


class PushSettings(Section):
    """The port that takes pushes and answers probes and the back-pressure question."""

    host: Annotated[str, Field(min_length=1)] = Field(
        "127.0.0.1", description="Address to listen on; beyond loopback `token_file` is needed."
    )
    port: Annotated[int, Field(ge=0, le=65_535)] | None = Field(
        None, description="TCP port; 0 takes a free one, unset: nothing is listened on."
    )
    token_file: str | None = Field(
        None,
        description="File whose first line pushes must bring as a bearer token; unset: everybody "
        "who reaches the port may push.",
    )
    max_body_bytes: Annotated[int, Field(ge=1024)] = Field(
        8 * 2**20,
        description="Largest push: a million token ids are about 6 MB of JSON.",
    )
    reading_bytes: Annotated[int, Field(ge=1024)] = Field(
        16 * 2**20,
        description="Bodies that are being read hold this much together; beyond, pushes get 503.",
    )
    waiting_bytes: Positive = Field(
        16 * 2**20,
        description="What was taken and is not packed yet holds this much; beyond, pushes get 503.",
    )
    connections: Annotated[int, Field(ge=1, le=10_000)] = Field(
        64,
        description="Connections at once; one more ends the one that is silent for "
        "longest, or gets 503.",
    )
    read_ms: Positive = Field(
        10_000,
        description="How long a client may take to send the head of a request, and then its body.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.reading_bytes < self.max_body_bytes:
            raise ValueError("reading_bytes must not be below max_body_bytes")
        if self.port is not None and self.token_file is None and not is_loopback(self.host):
            raise ValueError("token_file must be set where host is not a loopback address")
        return self


class BackPressureSettings(Section):
    """When engines should admit no more requests, by how full their KV pools are."""

    stop_above: _Share = Field(
        0.90,
        description="Share of the KV pool above which the answer becomes 503: beyond 90 % engines "
        "preempt and evict, which is when KV memory was seen to be mixed up.",
    )
    resume_below: _Share = Field(
        0.80, description="Share below which it becomes 200 again, so that it does not flap."
    )
    stale_ms: Positive = Field(
        15_000, description="A sample older than this says nothing any more; unknown answers 200."
    )

    @model_validator(mode="after")
    def _has_a_gap(self) -> Self:
        if self.resume_below > self.stop_above:
            raise ValueError("resume_below must not be above stop_above")
        return self
