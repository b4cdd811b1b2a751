"""The audit record of one step in the life of a KV block, as engine events are written.

Field names and words are those of the wire format `engine-event/1`; what is not known is left out.
"""

import json
from dataclasses import asdict, dataclass
from typing import Final, TypedDict

SCHEMA: Final = "engine-event/1"

MAX_NAME_CHARS: Final = 512
"""Longest tenant or request id that the wire format takes."""

MAX_TIME_MS: Final = 253_402_300_799_999
"""End of the year 9999, the latest time that the wire format takes."""


class Label(TypedDict):
    """What travels with KV memory that is transferred; JSON and MessagePack carry it as it is."""

    tenant: str
    request_id: str
    created_at_ms: int
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose KV memory it is. `created_at_ms` is when the request was made, in ms since 1970.

    It tells two requests with one id apart, so it must travel with the request: both sides of a
    transfer compare it exactly. Raises ValueError for what no record can hold.
    """

    tenant: str
    request_id: str
    created_at_ms: int

    def __post_init__(self) -> None:
        for name in (self.tenant, self.request_id):
            if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARS:
                raise ValueError(f"tenant and request id have 1 to {MAX_NAME_CHARS} characters")
            if not name.isprintable():
                raise ValueError("tenant and request id hold printable characters only")
        created = self.created_at_ms
        if not isinstance(created, int) or not 0 < created <= MAX_TIME_MS:
            raise ValueError("the creation time is in milliseconds since 1970")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One step. `block` is a keyed tag; `detail` a fixed word; times are ms since 1970."""

    kind: str
    engine: str
    kv_pool: str
    at_ms: int
    request_id: str | None = None
    tenant: str | None = None
    other_tenant: str | None = None
    block: str | None = None
    created_at_ms: int | None = None
    expires_at_ms: int | None = None
    detail: str | None = None

    def line(self) -> bytes:
        """Return the event as one line of JSON, newline included."""
        known = {name: value for name, value in asdict(self).items() if value is not None}
        text = json.dumps({"schema": SCHEMA, **known}, separators=(",", ":"))
        return text.encode("ascii") + b"\n"
