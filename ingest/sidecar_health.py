"""What a sidecar says of itself: is all well, and if not why; counts, never content."""

import logging
import os
from collections import Counter

import msgspec

from detector.errors import BleedwatchError, KeyFileError
from ingest.sidecar import Sidecar
from ingest.sidecar_beside import BesideHealth
from ingest.sidecar_input import SidecarInput
from ingest.spool_counts import SpoolCounts

_log = logging.getLogger(__name__)


class LogHealth(msgspec.Struct):
    """One log: how far it is read, and what of it could not be."""

    name: str
    known: bool
    """True once its format is known."""
    behind_bytes: int
    lines: int
    requests: int
    repeats: int
    """Requests that were read again behind a restart, and not sent again."""
    unmapped: int
    broken: dict[str, int]
    ignored: dict[str, int]
    incomplete: dict[str, int]
    """Requests by "side.loss", such as "response.never_finished"."""


class SidecarHealth(msgspec.Struct):
    """One look at a sidecar. `reasons` says why not all is well, in the order of their weight."""

    ok: bool
    at_ms: int
    reasons: tuple[str, ...]
    records: dict[str, int]
    tokens: int
    refused: dict[str, int]
    """Records that could not be packed, by reason."""
    unsafe_bytes: int
    """Sent and neither acknowledged nor in the spool."""
    failed_sends: int
    discarded_bytes: int
    logs: tuple[LogHealth, ...]
    spool: SpoolCounts | None = None
    """What waits on disk, and what was given up for room; None without a spool."""
    beside: BesideHealth = BesideHealth()
    """Pushes, KV events, engines."""
    heartbeats: dict[str, int] = msgspec.field(default_factory=dict)
    """When the last heartbeat was made, by its sender; empty if none is."""


def health_of(
    sidecar: Sidecar,
    *,
    at_ms: int,
    key_problem: KeyFileError | None = None,
    spool: SpoolCounts | None = None,
    spool_problem: BleedwatchError | None = None,
    beside: BesideHealth | None = None,
    heartbeats: dict[str, int] | None = None,
) -> SidecarHealth:
    """Look at a sidecar; `spool_problem` says why messages go to the spool."""
    sending = sidecar.sending
    logs = tuple(_log_health(one) for one in sidecar.inputs)
    reasons = [
        *([f"messages are refused: {sending.problem}"] if sending.problem else []),
        *([str(sidecar.checkpoint_problem)] if sidecar.checkpoint_problem else []),
        *(_spool_reasons(spool) if spool else []),
        *([f"messages wait on disk: {spool_problem}"] if spool_problem else []),
        *([str(key_problem)] if key_problem else []),
        *(["no log is there yet"] if sidecar.inputs.are_expected and not logs else []),
        *[f"{one.log.name}: {why}" for one in sidecar.inputs if (why := _unread(one)) is not None],
    ]
    return SidecarHealth(
        ok=not reasons,
        at_ms=at_ms,
        reasons=tuple(reasons),
        records=dict(sending.records),
        tokens=sending.tokens,
        refused=dict(sending.refused),
        unsafe_bytes=sending.unsafe_bytes,
        failed_sends=sending.failed_sends,
        discarded_bytes=sidecar.discarded_bytes,
        logs=logs,
        spool=spool,
        beside=beside or BesideHealth(),
        heartbeats=heartbeats or {},
    )


def _unread(one: SidecarInput) -> str | None:
    """Say why nothing can come of a log yet; one that was read before a restart may be silent."""
    if one.is_known:
        return None
    if one.has_lines:
        return "the format is not recognised yet"
    if not one.log.is_there:
        return "is not there yet"
    return None if one.log.next_at else "nothing has been written to it yet"


def _spool_reasons(spool: SpoolCounts) -> list[str]:
    """Say what nobody will ever see."""
    gone = sum(spool.dropped.values())
    return [
        *([f"{gone} messages were given up: the spool was full"] if gone else []),
        *([f"{spool.cut_bytes} bytes of the spool were damaged"] if spool.cut_bytes else []),
    ]


def _log_health(one: SidecarInput) -> LogHealth:
    coverage = one.coverage
    incomplete: Counter[str] = Counter()
    for row in coverage.losses():
        incomplete[f"{row.side}.{row.loss}"] += row.requests
    return LogHealth(
        name=one.log.name,
        known=one.is_known,
        behind_bytes=one.log.behind_bytes,
        lines=coverage.lines,
        requests=coverage.requests,
        repeats=one.repeats,
        unmapped=coverage.unmapped_tenants,
        broken=dict(coverage.broken_by_reason),
        ignored=dict(coverage.ignored_by_reason),
        incomplete=dict(incomplete),
    )


def write_health(health: SidecarHealth, path: str) -> None:
    """Write health to a file; a reader sees a whole one. A failure is logged, and no more."""
    fresh = f"{path}.new"
    try:
        with open(fresh, "wb") as file:
            file.write(msgspec.json.encode(health) + b"\n")
        os.replace(fresh, path)
    except OSError as error:
        _log.warning("%s: the health file cannot be written: %s", fresh, error.strerror)
