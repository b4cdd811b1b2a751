"""Names that heartbeats have and nobody else: a synthetic bleed that must come through everything.

A sidecar makes it, a worker finds it as it finds any, an api hears of it. Whoever could take one of
these names as a tenant would not be seen, so the door refuses them.
"""

import re
from typing import Final

RULE: Final = "BW902"
"""What the finding is called, so that nothing takes it for somebody's."""

RESERVED: Final = "bleedwatch-heartbeat"
"""Begins the names of tenants and KV pools of heartbeats."""

SOURCE: Final = f"{RESERVED}-source"
SINK: Final = f"{RESERVED}-sink"

_REQUEST: Final = re.compile(r"heartbeat-(\d{1,15})-(?:source|sink)")


def is_reserved(name: str) -> bool:
    """Whether a tenant or a pool is one of heartbeats."""
    return name.startswith(RESERVED)


def pool_of(sender: str) -> str:
    """Return the pool of a sender, in which its heartbeats meet nothing but each other."""
    return f"{RESERVED}/{sender}"


def request_id(sent_ms: int, tenant: str) -> str:
    """Return the id of a heartbeat's request, which says when it was made (wall time)."""
    return f"heartbeat-{sent_ms}-{tenant.removeprefix(RESERVED + '-')}"


def sent_ms(request: str) -> int | None:
    """Return when a heartbeat was made; None if the id is none of a heartbeat."""
    found = _REQUEST.fullmatch(request)
    return None if found is None else int(found[1])
