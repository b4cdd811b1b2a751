"""What the metrics of a tap are read from: counts and levels, without names of anybody."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class TapState:
    """One look at a tap."""

    watched: int = 0
    passed: int = 0
    upgraded: int = 0
    in_flight: int = 0
    cut: int = 0
    kept: int = 0
    held_bytes: int = 0
    waiting_bytes: int = 0
    blind: Mapping[str, int] = field(default_factory=dict)
    engine_errors: Mapping[str, int] = field(default_factory=dict)
    restarts: int = 0
