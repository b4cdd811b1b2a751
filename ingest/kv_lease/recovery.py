"""What a process that crashed has left behind, by its audit records."""

from collections.abc import Iterable

from .events import Event, Owner

HOLDS_ON = frozenset({"kept", "shared"})
"""Details of releases after which a block is still there: somebody may read it, or does."""


def left_open(events: Iterable[Event], engine: str) -> dict[str, Owner]:
    """Return the blocks (tags) of an engine that were not invalidated.

    Each with who holds it still, or held it last.
    """
    users: dict[str, list[Owner]] = {}
    last: dict[str, Owner] = {}
    for event in events:
        owner = _owner(event)
        if event.engine != engine or event.block is None or owner is None:
            continue
        if event.kind in ("allocated", "reused"):
            users.setdefault(event.block, []).append(owner)
            last[event.block] = owner
        elif event.kind == "released" and event.detail in HOLDS_ON:
            if owner in users.get(event.block, ()):
                users[event.block].remove(owner)
        elif event.kind == "released":
            users.pop(event.block, None)
            last.pop(event.block, None)
    return {tag: users[tag][-1] if users.get(tag) else owner for tag, owner in last.items()}


def _owner(event: Event) -> Owner | None:
    if event.tenant is None or event.request_id is None or event.created_at_ms is None:
        return None
    try:
        return Owner(event.tenant, event.request_id, event.created_at_ms)
    except ValueError:
        return None
