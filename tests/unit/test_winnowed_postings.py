"""Winnowing picks the smallest keys; the table must spread them as evenly as any others."""

import numpy as np
import pytest

from detector.index.postings import PostingIndex
from detector.index.sequences import SequenceStore
from detector.kernels.winnow import sample
from detector.model import EngineId, Kind, PoolId, RequestId, Sequence, TenantId

KEYS = 400_000
LONGEST = 20_000
"""Keys of one sequence."""


def sequence(number: int) -> Sequence:
    return Sequence(
        tenant=TenantId("acme"),
        request_id=RequestId(f"r-{number}"),
        kv_pool=PoolId("p"),
        engine=EngineId("e"),
        model="m",
        kind=Kind.PROMPT,
        started_at_ms=1,
        ended_at_ms=1,
        token_hashes=np.empty(0, np.uint32),
    )


@pytest.mark.parametrize("pool", [f"pool-{number}" for number in range(8)])
def test_no_picked_key_is_lost(pool: str) -> None:
    """Crowded into one end of the table they would run over its edge, in some pools."""
    store = SequenceStore()
    index = PostingIndex(store, memory_bytes=1 << 30)
    draw = np.random.default_rng(1)
    none_masked = np.zeros(LONGEST, np.bool_)
    picked = 0
    for number in range(KEYS // LONGEST):
        keys = draw.integers(-(1 << 63), (1 << 63) - 1, LONGEST)
        positions = np.flatnonzero(sample(keys, none_masked, 8)).astype(np.int32)
        index.make_room(LONGEST, 0)
        at = store.add(sequence(number), 1)
        index.observe(keys[positions] ^ index.salt(pool), positions, at, window_ms=1)
        picked += len(positions)
    assert index.live_postings(0) == picked
