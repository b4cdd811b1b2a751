"""Sequences made by hand, and a detector that has learned enough to be sure."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from detector.finding import Finding
from detector.index.window import Sequencer
from detector.model import EngineId, Hashes, Kind, PoolId, RequestId, Sequence, TenantId
from detector.pipeline import Detector
from detector.settings import CommonnessSettings, DetectionSettings

LEARNED = CommonnessSettings(learning_ms=0, memory_bytes=8 * 1024 * 1024)
SETTINGS = DetectionSettings(commonness=LEARNED)
"""The defaults, past the learning state."""


def text(name: int, count: int) -> Hashes:
    """Return `count` token hashes; another name gives other ones."""
    return np.random.default_rng(name).integers(0, 2**32, count, np.uint32)


def join(*pieces: Hashes) -> Hashes:
    """Return the pieces one after the other."""
    return np.concatenate(pieces)


def prompt(tenant: str, request: str, at_s: float, tokens: Hashes, **more: Any) -> Sequence:
    """Return the prompt of a request that arrived at `at_s` seconds."""
    return sequence(Kind.PROMPT, tenant, request, at_s, tokens, end_s=at_s, **more)


def response(
    tenant: str, request: str, at_s: float, tokens: Hashes, *, end_s: float | None = None,
    **more: Any,
) -> Sequence:  # fmt: skip
    """Return the response to a request that arrived at `at_s`; it ends a second later."""
    end = at_s + 1 if end_s is None else end_s
    return sequence(Kind.RESPONSE, tenant, request, at_s, tokens, end_s=end, **more)


def sequence(
    kind: Kind, tenant: str, request: str, at_s: float, tokens: Hashes, *, end_s: float, **more: Any
) -> Sequence:
    """Return one side of a request in pool `p`, unless told otherwise."""
    pool = PoolId(more.pop("pool", "p"))
    return Sequence(
        tenant=TenantId(tenant), request_id=RequestId(request), kv_pool=pool,
        engine=EngineId("e"), model="m", kind=kind, started_at_ms=round(at_s * 1000),
        ended_at_ms=round(end_s * 1000), token_hashes=tokens, **more,
    )  # fmt: skip


def detector(settings: DetectionSettings = SETTINGS, **more: Any) -> Detector:
    """Return a new detector."""
    return Detector(settings, **more)


def found(
    sequences: Iterable[Sequence],
    *,
    by: Detector | None = None,
    hold_ms: int = 600_000,
) -> list[Finding]:
    """Return the last version of every finding in sequences that arrive in any order."""
    by = by or detector()
    sequencer = Sequencer(hold_ms=hold_ms)
    findings: dict[str, Finding] = {}
    for arriving in sequences:
        for ready in sequencer.push(arriving):
            findings |= {one.id: one for one in by.observe(ready)}
    for ready in sequencer.drain():
        findings |= {one.id: one for one in by.observe(ready)}
    return list(findings.values())


def pairs(findings: Iterable[Finding]) -> set[tuple[str, str]]:
    """Return (sink request, source tenant) of every finding."""
    return {(one.sink.request_id, one.source.tenant) for one in findings}
