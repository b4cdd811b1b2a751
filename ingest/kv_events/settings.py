"""Settings of the KV events: where engines publish what happens to their KV blocks."""

from typing import Annotated

from pydantic import Field

from detector.settings import Positive, Section
from ingest.names import Name

Endpoint = Annotated[str, Field(pattern=r"^(?:tcp|ipc)://.{1,256}$")]


class KvEventSource(Section):
    """One publisher: an engine, or one rank of it."""

    endpoint: Endpoint
    replay_endpoint: Endpoint | None = None
    topic: str = ""
    engine: Name
    kv_pool: Name | None = None
    model: str = ""


class KvEventSettings(Section):
    """What a sidecar takes from KV events."""

    sources: tuple[KvEventSource, ...] = Field(
        (),
        description="Publishers, one for each engine and data-parallel rank: `endpoint`, `engine`, "
        "and if there are any `replay_endpoint`, `topic`, `kv_pool`, `model`. An endpoint with `*` "
        "is listened on, for engines that connect.",
    )
    sequences: bool = Field(
        False,
        description="Make sequences of the blocks' tokens, where logs hold none. A cached prefix "
        "and the last, unfilled block of a response are not in them.",
    )
    every_block: bool = Field(
        False,
        description="Send an event for every block that is stored, stored again or removed, not "
        "only where isolation is broken.",
    )
    max_blocks: Positive = Field(
        65_536,
        description="Blocks of a publisher whose owner is remembered, about 400 bytes each; the "
        "one not stored for longest is forgotten first.",
    )
    idle_ms: Positive = Field(
        30_000, description="A request that has stored nothing for so long is taken as ended."
    )
