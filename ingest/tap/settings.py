"""Settings of the tap: which engine it stands before, what it asks for and how much it may hold.

Apart from the tap, so that reading the settings loads nothing else.
"""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from detector.addresses import base_address
from detector.settings import Positive, Section

Isolation = Literal["cache_salt", "extra_key", "session_id"]


class TapSettings(Section):
    """A reverse proxy before one engine, which keeps the token ids that pass through it."""

    engine_url: str | None = Field(
        None, description="Where the engine listens, such as http://127.0.0.1:8000."
    )
    engine_kind: Literal["vllm", "sglang"] = Field(
        "vllm", description="Whose API it is: which fields ask for ids differs."
    )
    host: Annotated[str, Field(min_length=1)] = Field(
        "127.0.0.1", description="Address to listen on; `0.0.0.0` where clients are elsewhere."
    )
    port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        8080, description="TCP port to listen on; 0 takes a free one."
    )
    isolate: tuple[Isolation, ...] = Field(
        (),
        description="Fields set in every request so that the engine keeps tenants apart: "
        "`cache_salt` and `extra_key` (SGLang) hold a keyed tag of the tenant, `session_id` its "
        "name, which engines publish in KV events.",
    )
    max_body_bytes: Annotated[int, Field(ge=1024)] = Field(
        16 * 2**20,
        description="Largest request that is read; a larger one passes unread and is counted.",
    )
    max_answer_bytes: Annotated[int, Field(ge=1024)] = Field(
        32 * 2**20,
        description="Largest answer, or event of a stream, that is read: a million ids are 7 MB.",
    )
    request_tokens: Positive = Field(
        1_048_576, description="Ids of one request that are kept; of a larger one none is."
    )
    held_bytes: Annotated[int, Field(ge=1024)] = Field(
        256 * 2**20,
        description="What all requests hold together in bodies, answers and ids; beyond, requests "
        "pass unread and are counted.",
    )
    waiting_bytes: Positive = Field(
        32 * 2**20,
        description="Ids of finished requests that wait to be hashed; beyond, they are dropped and "
        "counted.",
    )
    connections: Annotated[int, Field(ge=1, le=100_000)] = Field(
        4_096,
        description="Clients at once; one more ends the one that is silent for "
        "longest, or gets 503.",
    )
    head_ms: Positive = Field(
        10_000, description="How long a client may take to send the head of a request."
    )
    connect_ms: Positive = Field(
        5_000,
        description="How long the engine may take to accept a connection; then the answer is 502. "
        "Nothing else that the engine does is timed.",
    )
    drain_ms: Annotated[int, Field(ge=0)] = Field(
        10_000,
        description="How long a tap that is told to stop waits for requests in flight, before "
        "`sidecar.grace_ms` begins.",
    )

    @field_validator("engine_url")
    @classmethod
    def _is_a_base(cls, value: str | None) -> str | None:
        """Refuse what is more than scheme, host and port: the rest comes from each request."""
        return None if value is None else base_address(value)
