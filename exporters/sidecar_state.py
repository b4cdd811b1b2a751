"""What the metrics of a sidecar are read from: counts and levels, without names of anybody."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolState:
    """What a spool holds, and what it has done since it was opened."""

    messages: int
    bytes: int
    spooled: int
    replayed: int
    dropped: Mapping[str, int]
    """Messages given up for room, by topic."""
    dropped_bytes: int
    refused: int
    """Messages that found no room; the sidecar has kept them."""
    cut_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PushState:
    """What came through the push port."""

    requests: int
    unmapped: int
    refused: Mapping[str, int]
    """Requests that could not be read, by reason."""
    incomplete: Mapping[tuple[str, str], int]
    """Requests without all ids of a side, by side and cause."""
    waiting_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KvEventsState:
    """What came of all publishers of KV events."""

    messages: Mapping[str, int]
    """Messages by what became of them."""
    unreadable: Mapping[str, int]
    """Events and messages that could not be used, by reason."""
    told: Mapping[str, int]
    """Records made of them, by kind or detail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SidecarState:
    """One look at a sidecar; figures of logs are those of all logs together."""

    records: Mapping[str, int] = field(default_factory=dict)
    """Records packed, by kind."""
    tokens: int = 0
    lines: int = 0
    requests: int = 0
    repeats: int = 0
    unmapped: int = 0
    broken: Mapping[str, int] = field(default_factory=dict)
    ignored: Mapping[str, int] = field(default_factory=dict)
    incomplete: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Requests without all ids of a side, by side and cause."""
    behind_bytes: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    unsafe_bytes: int = 0
    failed_sends: int = 0
    discarded_bytes: int = 0
    spool: SpoolState | None = None
    push: PushState | None = None
    kv_events: KvEventsState | None = None
    heartbeats: Mapping[str, int] = field(default_factory=dict)
    """When the last heartbeat was made, in Unix milliseconds, by its sender."""


class SidecarSource(Protocol):
    """Gives the state; asked in the threads of the metrics server."""

    def state(self) -> SidecarState:
        """Return the state of the last second."""
        ...
