"""What a sidecar shows of the engines beside it at one moment.

Names of engines are the operator's own and few; nothing here names a tenant, request or pool.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineState:
    """One rank of one engine; None is unknown. Counts are since the start of this process.

    Counts are by source: "metrics", the engine's own counters, or "log", lines of its log. The two
    may tell the same failure twice, so they are never added up.
    """

    engine: str
    rank: str = ""
    """Data-parallel rank, empty where the engine has one only."""
    unreleased_tokens: int | None = None
    unreleased_quality: str = "unknown"
    pool_usage_ratio: float | None = None
    clear_failures: Mapping[str, int] = field(default_factory=dict)
    metadata_mismatches: Mapping[str, int] = field(default_factory=dict)
    transfer_failures: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginesState:
    """All engines of a sidecar, and how asking them went: scrapes by engine and outcome."""

    engines: tuple[EngineState, ...] = ()
    scrapes: Mapping[tuple[str, str], int] = field(default_factory=dict)
    dropped_samples: int = 0
    probe_stale: Mapping[str, bool] = field(default_factory=dict)
    """Engines that have the record of a probe: whether they run something else than what passed."""


class EnginesSource(Protocol):
    """Whoever can say how the engines are doing."""

    def engines(self) -> EnginesState:
        """Return the state; cheap, and from any thread."""
        ...
