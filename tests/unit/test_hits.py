"""What is made of the hits of a sink, against plain numpy."""

import numpy as np
import pytest

from detector.kernels.hits import complete, distinct_of, of_source, tally
from detector.match.reasons import CODES, UNEXPLAINED


@pytest.mark.parametrize("count", [0, 1, 7, 300])
@pytest.mark.parametrize("seed", range(4))
def test_hits_are_picked_completed_and_counted(count: int, seed: int) -> None:
    draw = np.random.default_rng(seed)
    sources, source_at, sink_at = draw.integers(0, 3, (3, count))
    codes = draw.integers(0, 3, count).astype(np.uint8)
    by_pair = draw.integers(0, 2, 3).astype(np.uint8) * np.uint8(7)

    mine = (sources == 1) & (codes == UNEXPLAINED)
    got = of_source(1, sources, source_at, sink_at, codes, by_pair)
    wanted = source_at[mine], sink_at[mine], by_pair[source_at[mine]]
    assert [one.tolist() for one in got] == [one.tolist() for one in wanted]

    whole = np.where(codes == UNEXPLAINED, by_pair[source_at], codes)
    complete(codes, by_pair, source_at)
    assert codes.tolist() == whole.tolist()

    counts = np.ones(len(CODES) + 1, np.int64)
    assert tally(codes, counts) == np.count_nonzero(codes == UNEXPLAINED)
    assert counts.tolist() == (1 + np.bincount(codes, minlength=len(counts))).tolist()

    use = draw.random(count) < 0.5
    assert distinct_of(np.sort(sink_at), use) == len(np.unique(np.sort(sink_at)[use]))
