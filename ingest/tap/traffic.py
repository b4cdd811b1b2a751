"""What has passed through the proxy: written by its event loop, read by anybody."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Traffic:
    """Counts since the start, and how many requests are under way now."""

    watched: int = 0
    """Requests that generate, whether or not their ids were seen."""
    passed: int = 0
    """Other requests, passed as they came."""
    upgraded: int = 0
    """Connections that became something else than HTTP, passed as they came."""
    in_flight: int = 0
    cut: int = 0
    """Requests whose client went away."""
    engine_errors: Counter[str] = field(default_factory=Counter)
    """Requests that the engine did not answer, or not whole."""
