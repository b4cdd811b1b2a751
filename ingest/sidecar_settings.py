"""Settings of a sidecar: what it follows, and what it remembers of it.

Apart from the sidecar, so that reading the settings loads nothing else.
"""

from typing import Annotated, Literal

from pydantic import Field

from detector.settings import Positive, Section
from ingest.names import Name


class SidecarSettings(Section):
    """What a sidecar follows, and how."""

    files: tuple[str, ...] = Field(
        (),
        description="Logs to follow: paths, patterns such as `/logs/*.log`, FIFOs, or `-` for "
        "standard input. Rotated files of a log are found by themselves.",
    )
    audit_files: tuple[str, ...] = Field(
        (),
        description="Audit files of KV leases to follow: paths or patterns. Every line is an "
        "engine event; they are never emptied.",
    )
    format: Literal["auto", "jsonl", "vllm", "sglang"] = Field(
        "auto", description="Format of the logs; `auto` looks at the first lines of each."
    )
    engine: Name | None = Field(
        None, description="Engine of all logs; unset: the name of each file, without suffixes."
    )
    kv_pool: Name | None = Field(
        None,
        description="KV pool of requests whose log names none; unset: the engine. Engines that "
        "share KV memory must be given the same pool.",
    )
    checkpoint_file: str | None = Field(
        None,
        description="Where to keep how far each log is read; unset: a new start reads from the "
        "beginning of what is there.",
    )
    checkpoint_ms: Positive = Field(
        1_000, description="How often it is written, once what was read is acknowledged."
    )
    poll_ms: Positive = Field(
        100, description="How long to wait before looking again when no log has grown."
    )
    rotate_wait_ms: Positive = Field(
        2_000,
        description="A rotated file is finished with once it has been silent for so long and its "
        "successor has content: its writer may need a moment to change over.",
    )
    start_at: Literal["beginning", "end"] = Field(
        "beginning", description="Where to start in a log that the checkpoint does not know."
    )
    own_logs: bool = Field(
        False,
        description="The logs are for this sidecar alone: what is acknowledged is freed, rotated "
        "files are deleted.",
    )
    unfinished_ms: Positive = Field(
        600_000,
        description="A request whose end is not logged within so much log time is sent as it is.",
    )
    unfinished_requests: Positive = Field(
        20_000, description="Requests of a log that wait for their end at most; the oldest goes."
    )
    unfinished_tokens: Positive = Field(
        1_000_000,
        description="Token ids that they hold at most, about 36 bytes each; the oldest goes.",
    )
    grace_ms: Annotated[int, Field(ge=0)] = Field(
        20_000,
        description="How long a sidecar that is told to stop goes on reading and waiting for "
        "acknowledgements; below the grace period of its container, which is 30 s unless set.",
    )
    health_file: str | None = Field(
        None, description="File that says once a second whether all is well, and if not, why."
    )

    @property
    def followed(self) -> tuple[str, ...]:
        """All paths and patterns that are followed."""
        return self.files + self.audit_files
