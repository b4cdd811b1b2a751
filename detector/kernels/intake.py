"""One pass over a new sequence: its shingles, which of them are tainted or common (numba)."""

import numpy as np

from detector.kernels.cache import njit
from detector.kernels.shingle import shingles
from detector.kernels.siphash import tags
from detector.kernels.tenants import contains, learn


@njit(nogil=True, cache=True)
def take(
    tokens, min_distinct, state, maybe, tainted, old_tainted,
    slots, shared, mark, salt,
):  # fmt: skip
    """Shingle a sequence and learn it; return (keys, masked) and what `learn_shown` returns."""
    keys, masked = shingles(tokens, min_distinct)
    pool_keys, tagged, rare, first, low, common = learn_shown(
        keys, masked, state, maybe, tainted, old_tainted,
        slots, shared, mark, salt,
    )  # fmt: skip
    return keys, masked, pool_keys, tagged, rare, first, low, common


@njit(nogil=True, cache=True)
def learn_shown(
    keys, masked, state, maybe, tainted, old_tainted,
    slots, shared, mark, salt,
):  # fmt: skip
    """Return (pool_keys, tagged, rare, first, low, common).

    What is neither masked nor tainted is learned under `mark`. `pool_keys` are the keys as they
    are filed in `postings`, `tagged` those by which the memory knows the shingles: their tags under
    `state`, or the keys themselves if it is empty. `rare` is True where a shingle is neither masked
    nor common for everybody, `first` where the memory did not know that the mark's party has shown
    it. `low` counts the masked shingles, `common` those that are neither masked nor rare.
    """
    pool_keys = keys ^ salt
    tagged = tags(state, keys) if len(state) else keys
    rare = ~masked
    use = rare.copy()
    first = np.zeros(len(keys), np.bool_)
    found = contains(maybe, tainted, old_tainted, tagged)
    for i in range(len(keys)):
        use[i] &= not found[i]
    learn(slots, shared, tagged, use, rare, first, mark)
    low = 0
    uncommon = 0
    for i in range(len(keys)):
        low += masked[i]
        uncommon += rare[i]
    return pool_keys, tagged, rare, first, low, len(keys) - low - uncommon
