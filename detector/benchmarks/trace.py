"""The look-back: stored tokens scanned for the source of one response, beside a set of 10-grams."""

from typing import Final

import numpy as np

from detector.benchmarks.harness import Work, interleave
from detector.benchmarks.kernels import Progress, Report
from detector.benchmarks.workload import token_batch
from detector.model import EngineId, Hashes, Kind, PoolId, RequestId, Sequence, TenantId
from detector.settings import DetectionSettings
from detector.sketch.shingle import SHINGLE_TOKENS
from detector.trace.response import Response
from detector.trace.scan import Scan

RETAINED_TOKENS: Final = 50_000_000
"""An hour and a half of a pool with 10,000 tokens a second."""

LENGTH: Final = 1_000
RESPONSE_TOKENS: Final = 1_000
TENANTS: Final = 50
BLEED_TOKENS: Final = 40
PEER_SEQUENCES: Final = 500
"""Sequences given to the peer, which needs seconds for a million tokens."""

ROUNDS: Final = 5
SECONDS: Final = 20.0


def run_trace(*, on_progress: Progress) -> Report:
    """Scan 50 million retained tokens for the source of one response; it must be found."""
    on_progress(f"{RETAINED_TOKENS:,} retained tokens")
    retained, response = _traffic()
    report = Report()
    timings = interleave(
        {
            "look-back (numba)": _ours(retained, response),
            "Python set of 10-grams": _peer(retained, response),
        },
        rounds=ROUNDS,
        seconds=SECONDS,
    )
    report.add("retained tokens scanned", timings, unit="token", ours="look-back (numba)")
    report.ratios["million tokens a second on one core"] = 1e3 / timings["look-back (numba)"].median
    return report


def _traffic() -> tuple[list[Sequence], Response]:
    """Return what is retained, one old prompt of which bled into the response."""
    batch = token_batch(RETAINED_TOKENS + RESPONSE_TOKENS, length=LENGTH, seed=1)
    table = np.empty(0, np.uint32) if batch.table is None else batch.table
    hashes = table[batch.tokens]
    tokens = hashes[RETAINED_TOKENS:].copy()
    tokens[500 : 500 + BLEED_TOKENS] = hashes[300 : 300 + BLEED_TOKENS]
    retained = [
        _sequence(number, hashes[begin : begin + LENGTH])
        for number, begin in enumerate(range(0, RETAINED_TOKENS, LENGTH))
    ]
    sink = _sequence(len(retained), tokens, tenant="receiver", kind=Kind.RESPONSE)
    return retained, Response(sink, tokens, ())


def _sequence(
    number: int, tokens: Hashes, *, tenant: str | None = None, kind: Kind = Kind.PROMPT
) -> Sequence:
    return Sequence(
        tenant=TenantId(tenant or f"tenant-{number % TENANTS}"),
        request_id=RequestId(str(number)),
        kv_pool=PoolId("pool"),
        engine=EngineId("engine"),
        model="",
        kind=kind,
        started_at_ms=number * 100,
        ended_at_ms=number * 100 + 1,
        token_hashes=tokens,
    )


def _ours(retained: list[Sequence], response: Response) -> Work:
    def work() -> int:
        scan = Scan(response, DetectionSettings(), since_ms=0)
        for sequence in retained:
            scan.add(sequence)
        if scan.result().sources[0].party.request_id != "0":
            raise AssertionError("the source was not found")
        return RETAINED_TOKENS

    return work


def _peer(retained: list[Sequence], response: Response) -> Work:
    """Return the same search with tuples: only whether a 10-gram occurs, no runs, no reasons."""
    few = retained[:PEER_SEQUENCES]
    wanted = set(_grams(response.tokens))

    def work() -> int:
        for sequence in few:
            _ = [gram for gram in _grams(sequence.token_hashes) if gram in wanted]
        return len(few) * LENGTH

    return work


def _grams(tokens: Hashes) -> list[tuple[int, ...]]:
    listed = tokens.tolist()
    return list(zip(*(listed[at:] for at in range(SHINGLE_TOKENS)), strict=False))
