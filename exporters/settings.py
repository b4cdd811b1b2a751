"""Settings of the port where a process shows its health and its metrics."""

from typing import Annotated

from pydantic import Field

from detector.settings import Positive, Section


class MetricsSettings(Section):
    """Where liveness, readiness and metrics are served, and what counts as alive and ready."""

    host: Annotated[str, Field(min_length=1)] = Field(
        "127.0.0.1",
        description="Address to listen on; `0.0.0.0` for probes from outside the machine.",
    )
    port: Annotated[int, Field(ge=0, le=65_535)] = Field(
        9464,
        description="TCP port of `/livez`, `/readyz` and `/metrics`; 0 takes a free one. 9464 is "
        "the usual port of OpenTelemetry's Prometheus exporters.",
    )
    live_ms: Positive = Field(
        120_000,
        description="A process whose loop has not turned for this long is not alive; the slowest "
        "batch must fit.",
    )
    ready_lag_ms: Positive = Field(
        60_000,
        description="A worker whose oldest unread record has waited longer than this is not ready.",
    )
