"""Settings of the stream: how long records wait for one another, and how many are taken at once."""

from typing import Annotated

from pydantic import Field

from detector.settings import Positive, Section


class StreamSettings(Section):
    """How the records of a partition are taken and put in order."""

    hold_ms: Annotated[int, Field(ge=0)] = Field(
        400,
        description="How long a record waits, in event time, for others that belong before it: "
        "twice what senders linger.",
    )
    idle_ms: Positive = Field(
        400,
        description="After so long without a record a partition finishes what waits for its turn.",
    )
    wait_ms: Positive = Field(
        60_000,
        description="A partition finishes what waits once a record has waited so long, whatever "
        "its event time: one clock that is ahead must not hold back what may be committed.",
    )
    ahead_ms: Positive = Field(
        60_000,
        description="A record dated so much after the moment it was sent has a wrong clock and is "
        "refused: it would move event time on for all others.",
    )
    batch_records: Positive = Field(
        64, description="Messages of a partition handled at once at most; 256 KB each when full."
    )
    global_tier: bool = Field(
        False,
        description="Compare whole responses over all pools as well, by sealed sketches that "
        "workers exchange: finds a response that went to a tenant of another pool.",
    )
    global_tier_memory_bytes: Positive = Field(
        256 * 1024**2,
        description="Byte budget of the sketches a worker keeps for it; the oldest goes first.",
    )
