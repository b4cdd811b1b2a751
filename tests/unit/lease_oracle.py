"""A slow, obvious ledger: what is violated, told from all events by its definition."""

from collections.abc import Sequence

from detector.ledger.violation import Breach
from ingest.kv_lease.events import Event

ENDS = {"rejected", "aborted", "timed_out", "clear_failed"}
BEGINS = {"allocated", "reused"}
GOES_ON = BEGINS | {"transferred"}

Told = tuple[Breach, str | None, str | None]
"""A violation: what, request, and block where it is about one."""


def violations(events: Sequence[Event], *, release_ms: int, now_ms: int) -> set[Told]:
    """Return all that is violated in events of one pool, in their order, up to an instant."""
    found: set[Told] = set()
    for at, event in enumerate(events):
        breach = None
        if event.kind == "transferred":
            breach = _of_transfer(events[:at], event)
        elif event.kind == "reused":
            breach = _of_reuse(events[:at], event)
        if breach is not None:
            found.add((breach, event.request_id, event.block))
    late = {one.request_id for one in events if one.kind in ENDS and one.request_id is not None}
    return found | {
        (Breach.NOT_RELEASED, request, None)
        for request in late
        if request is not None and _is_overdue(events, request, release_ms, now_ms)
    }


def _of_transfer(before: Sequence[Event], event: Event) -> Breach | None:
    if None in (event.tenant, event.request_id, event.created_at_ms):
        return Breach.TRANSFER_UNLABELLED
    stored, released = _life(before, event.block)
    is_gone = released is not None and _invalidates(released)
    if stored is not None and not is_gone and stored.tenant != event.tenant:
        return Breach.TRANSFER_OTHER_TENANT
    return None


def _of_reuse(before: Sequence[Event], event: Event) -> Breach | None:
    stored, released = _life(before, event.block)
    if stored is None:
        return None
    if stored.tenant != event.tenant:
        return Breach.REUSE_OTHER_TENANT
    if released is None or released.detail == "shared" or released.kind == "clear_failed":
        return Breach.REUSE_NOT_APPROVED
    if _invalidates(released):
        return Breach.REUSE_AFTER_RELEASE
    is_late = released.expires_at_ms is not None and event.at_ms >= released.expires_at_ms
    return Breach.REUSE_PAST_TTL if is_late else None


def _life(before: Sequence[Event], block: str | None) -> tuple[Event | None, Event | None]:
    """Return by whom a block was stored last, and the last time that anybody let go of it since."""
    stored, released = None, None
    for event in before:
        if event.block == block and event.kind == "allocated":
            stored, released = event, None
        elif event.block == block and event.kind in ("released", "clear_failed"):
            released = event
    return stored, released


def _invalidates(event: Event) -> bool:
    return event.kind == "released" and event.detail not in ("kept", "shared")


def _is_overdue(events: Sequence[Event], request: str, release_ms: int, now_ms: int) -> bool:
    """Tell whether a request held a block when its time to release was over, after some end."""
    for at, end in enumerate(events):
        if end.kind not in ENDS or end.request_id != request or end.at_ms + release_ms > now_ms:
            continue
        deadline_ms = end.at_ms + release_ms
        in_time = [one for one in events if one.at_ms < deadline_ms]
        goes_on = any(
            one.at_ms < deadline_ms and one.kind in GOES_ON and one.request_id == request
            for one in events[at + 1 :]
        )
        if not goes_on and _held(in_time, request) and _held(events[: at + 1], request):
            return True
    return False


def _held(events: Sequence[Event], request: str) -> set[str | None]:
    held: set[str | None] = set()
    gone: set[str | None] = set()
    for event in events:
        if event.kind == "allocated":
            gone.discard(event.block)
        if event.kind in BEGINS and event.request_id == request and event.block not in gone:
            held.add(event.block)
        elif event.kind == "released":
            if _invalidates(event):
                gone.add(event.block)
            if _invalidates(event) or event.request_id == request:
                held.discard(event.block)
    return held
