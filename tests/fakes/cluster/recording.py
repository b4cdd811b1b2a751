"""What a simulated cluster leaves behind: logs, scrapes and published KV events."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple


class Scrape(NamedTuple):
    """What one engine answered: the page of metrics, and its info endpoints by path."""

    at_s: float
    engine: str
    page: str
    documents: dict[str, Any]


class Published(NamedTuple):
    """A message of an engine's publisher of KV events."""

    at_s: float
    engine: str
    payload: bytes


@dataclass(slots=True, kw_only=True)
class Recording:
    """All in the order of time. `kind` of the engines: vllm or sglang.

    `requests` is the log of the engine that answers, `gateway` that of the gateway, `logs` those
    of all engines by name.
    """

    kind: str
    kv_pool: str
    requests: Path
    gateway: Path
    logs: dict[str, Path]
    scrapes: list[Scrape] = field(default_factory=list)
    published: list[Published] = field(default_factory=list)
