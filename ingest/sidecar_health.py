"""What a sidecar says of itself: is all well, and if not why; counts, never content."""

import contextlib
import logging
import os
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from detector.errors import KeyFileError
from ingest.sidecar import Sidecar
from ingest.sidecar_input import SidecarInput

_log = logging.getLogger(__name__)

WRITE_S: Final = 1.0
"""How often the health file is written; a probe may take it for dead after some multiples."""


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


def health_of(
    sidecar: Sidecar, *, at_ms: int, key_problem: KeyFileError | None = None
) -> SidecarHealth:
    """Look at a sidecar."""
    sending = sidecar.sending
    logs = tuple(_log_health(one) for one in sidecar.inputs)
    reasons = [
        *([f"messages are refused: {sending.problem}"] if sending.problem else []),
        *([str(sidecar.checkpoint_problem)] if sidecar.checkpoint_problem else []),
        *([str(key_problem)] if key_problem else []),
        *([] if logs else ["no log is there yet"]),
        *[f"{one.name}: the format is not recognised yet" for one in logs if not one.known],
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
    )


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


class HealthFile:
    """Writes the health of a sidecar to a file once a second; a reader sees a whole one."""

    def __init__(self, path: str, look: Callable[[], SidecarHealth]) -> None:
        self._path = path
        self._look = look
        self._written_s: float | None = None
        self._has_failed = False

    def beat(self, now_s: float) -> None:
        """Write it if it is time. What cannot be written is logged once; the sidecar goes on."""
        if self._written_s is not None and now_s - self._written_s < WRITE_S:
            return
        self._written_s = now_s
        fresh = f"{self._path}.new"
        try:
            with open(fresh, "wb") as file:
                file.write(msgspec.json.encode(self._look()) + b"\n")
            os.replace(fresh, self._path)
            self._has_failed = False
        except OSError as error:
            if not self._has_failed:
                _log.warning("%s: the health file cannot be written: %s", fresh, error.strerror)
            self._has_failed = True

    def remove(self) -> None:
        """Take it away: the process ends."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)
