"""How many records go into one message, and what a message may be at most.

Apart from the packer, so that reading the settings loads no broker's client.
"""

from typing import Annotated, Final

from pydantic import Field, model_validator

from detector.settings import Positive, Section
from ingest.schema import MAX_RECORD_BYTES

LARGEST_RECORD_BYTES: Final = 900_000
"""Room for the largest record: 131,072 incompressible hashes (524 KB), 16,384 spans (345 KB) and
ten names of 512 characters of 4 bytes (20 KB)."""

OVERHEAD_BYTES: Final = 8_192
"""Room for what a message holds besides its records: key, headers, seal, offsets and frames of one
record, and the pool's name three times."""


class PackingSettings(Section):
    """How many records go into one message."""

    target_bytes: Positive = Field(
        262_144,
        description="A batch is sent when its records reach this size before compression: large "
        "enough that a worker's cost per message, about 0.25 ms, is small beside its content.",
    )
    linger_ms: Positive = Field(
        200, description="A batch is sent at the latest this long after its first record."
    )
    message_limit_bytes: Annotated[
        int, Field(ge=LARGEST_RECORD_BYTES + OVERHEAD_BYTES, le=MAX_RECORD_BYTES)
    ] = Field(
        1_000_000,
        description="No message is larger; below the broker's `message.max.bytes`, which is "
        "1,048,588 unless set. The largest record needs 908,192; readers take 2 MiB.",
    )

    @model_validator(mode="after")
    def _target_fits(self) -> "PackingSettings":
        if self.target_bytes > self.message_limit_bytes:
            raise ValueError("target_bytes must not be above message_limit_bytes")
        return self
