"""Settings of incidents: what belongs together, and when it is over."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from detector.settings import Section

Span = Annotated[int, Field(ge=1000)]


class IncidentSettings(Section):
    """How findings become incidents."""

    join_ms: Span = Field(
        3_600_000,
        description="Findings of one KV pool, or about one request, that are no further apart in "
        "event time are one incident; one that was resolved is opened again.",
    )
    quiet_ms: Span = Field(
        900_000,
        description="An incident without news for this long is resolved.",
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.quiet_ms > self.join_ms:
            raise ValueError("quiet_ms must not exceed join_ms: one pool would have two incidents")
        return self
