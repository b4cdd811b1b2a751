"""What an api shows of itself at one moment: counts and levels, without names of anybody."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiState:
    """One look at an api. Counts are since its start; the store is as the last look found it."""

    findings: Mapping[str, int] = field(default_factory=dict)
    """Findings by what came of them: new, updated, repeated."""
    requests: int = 0
    refused: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    """Findings and rows that could not be read, by topic and reason."""
    changes: Mapping[str, int] = field(default_factory=dict)
    """Changes of incidents by kind."""
    lag_records: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Records of each partition that are not recorded yet; empty before it is known."""
    incidents: Mapping[str, int] = field(default_factory=dict)
    """Incidents in the store by state; empty before it is known."""
    outbox: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    """Notifications in the store by output and state; outputs are named by the settings."""
    failing_outputs: Mapping[str, bool] = field(default_factory=dict)
    heartbeats: Mapping[str, int] = field(default_factory=dict)
    """When the newest heartbeat that arrived was made, in Unix milliseconds, by sender."""
    store_failures: int = 0


class ApiSource(Protocol):
    """Gives the state; asked in the threads of the metrics server."""

    def state(self) -> ApiState:
        """Return the state of the last look."""
        ...
