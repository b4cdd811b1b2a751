"""Settings of the spool: where messages wait on disk, how many, and what is given up for room.

Apart from the spool, so that reading the settings loads nothing else.
"""

from typing import Annotated, Final, Literal

from pydantic import Field

from detector.settings import Positive, Section

LARGEST_SEGMENT_BYTES: Final = 16 * 2**20
"""Some 60 full messages: what a crash can repeat at most once the disk has lost our notes."""

SEGMENTS: Final = 8
"""Room is made by whole segments, so a full spool gives up an eighth of its content at most."""


class SpoolSettings(Section):
    """Where messages wait while the broker is away."""

    folder: str | None = Field(
        None,
        description="Folder of this sidecar alone, made if need be; unset: messages wait in memory "
        "and nothing more is read once 16 MiB do.",
    )
    max_bytes: Annotated[int, Field(ge=2**16)] = Field(
        2**30,
        description="What the spool takes on disk at most: a gibibyte is about six hours at "
        "20,000 tokens/s, at 2.4 bytes a token.",
    )
    when_full: Literal["drop_oldest", "refuse"] = Field(
        "drop_oldest",
        description="`drop_oldest` gives up the oldest messages and counts them; `refuse` keeps "
        "them and reads nothing more, which loses nothing while the logs are kept.",
    )
    sync: bool = Field(
        True,
        description="Ask the disk to keep each message before it counts as safe. Without it a "
        "power cut can lose what a killed process does not.",
    )
    after_ms: Positive = Field(
        2_000,
        description="A message that the broker has not acknowledged for so long goes to the spool.",
    )
    window_bytes: Positive = Field(
        8 * 2**20,
        description="Bytes read from the spool and not yet acknowledged before reading it waits.",
    )

    @property
    def segment_bytes(self) -> int:
        """Size of a segment that is full."""
        return min(LARGEST_SEGMENT_BYTES, self.max_bytes // SEGMENTS)
