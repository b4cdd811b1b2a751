"""Settings of heartbeats, apart from what sends them: reading settings loads nothing else."""

from typing import Annotated

from pydantic import Field

from detector.settings import Section


class HeartbeatSettings(Section):
    """Synthetic bleeds that must arrive, so that silence is never taken for safety."""

    every_ms: Annotated[int, Field(ge=1_000)] | None = Field(
        None,
        description="How often a sidecar, a tap or a `run all` that follows live input sends a "
        "heartbeat through the whole path; 120000 suits the alerts. Unset: never.",
    )
