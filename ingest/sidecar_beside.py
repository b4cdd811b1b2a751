"""What a sidecar counts beside its logs: pushes, KV events, and the engines that it asks."""

import msgspec


class PushHealth(msgspec.Struct, frozen=True):
    """What came through the push port."""

    requests: int
    unmapped: int
    refused: dict[str, int]
    """Requests that could not be read, by reason; their senders were told."""
    incomplete: dict[str, int]
    """Requests by "side.loss"."""
    waiting_bytes: int


class KvEventsHealth(msgspec.Struct, frozen=True):
    """What came of one publisher of KV events."""

    engine: str
    kv_pool: str
    messages: dict[str, int]
    """Messages by what became of them: frames, gaps, replayed, lost, restarts, broken."""
    unreadable: dict[str, int]
    """Events and messages that could not be used, by reason."""
    told: dict[str, int]
    """Engine events and sequences made of them, by kind or detail; requests without a tenant."""


class EngineHealth(msgspec.Struct, frozen=True):
    """One engine that is asked for its state."""

    engine: str
    kv_pool: str
    failed: int
    """Times it gave no sample."""


class BesideHealth(msgspec.Struct, frozen=True):
    """All of it at one moment; counts since the start."""

    push: PushHealth | None = None
    kv_events: tuple[KvEventsHealth, ...] = ()
    engines: tuple[EngineHealth, ...] = ()
    dropped_samples: int = 0
