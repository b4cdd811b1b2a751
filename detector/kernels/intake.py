"""One pass over a new sequence: shingle, sample, learn, and keep what is to index (numba)."""

import numpy as np

from detector.kernels.cache import njit
from detector.kernels.shingle import shingles
from detector.kernels.siphash import tags
from detector.kernels.tenants import contains, learn
from detector.kernels.winnow import sample


@njit(nogil=True, cache=True)
def take(
    tokens, min_distinct, window, limit, state, maybe, tainted, old_tainted,
    slots, shared, mark, salt,
):  # fmt: skip
    """Shingle a sequence and sample it as `Sampling` says.

    Return its shingles, (keys, masked), and what `learn_shown` returns.
    """
    keys, masked = shingles(tokens, min_distinct)
    picked = sample(keys, masked, window) if window else ~masked
    learned = learn_shown(
        keys, masked, picked, limit, state, maybe, tainted, old_tainted, slots, shared, mark, salt
    )
    return (keys, masked), learned


@njit(nogil=True, cache=True)
def learn_shown(
    keys, masked, picked, limit, state, maybe, tainted, old_tainted,
    slots, shared, mark, salt,
):  # fmt: skip
    """Learn a sequence's shingles; return (positions, pool_keys, fresh, low, common).

    What is picked or at most `limit`, and not tainted, is learned under `mark`. `positions` are
    those of the picked shingles that are not common for everybody, `pool_keys` their keys as they
    are filed in `postings`. The memory knows shingles by their tags under `state`, or by their keys
    if it is empty; `fresh` are the tags of which it did not know that the mark's party has shown
    them, none without a state. `low` counts the masked shingles, `common` the picked ones that
    everybody shows.
    """
    positions = np.empty(len(keys), np.int32)
    shown = np.empty(len(keys), np.int64)
    count = 0
    low = 0
    for i in range(len(keys)):  # without a branch: which ones are taken is not predictable
        positions[count] = i
        shown[count] = keys[i]
        count += picked[i] | ((not masked[i]) & (keys[i] <= limit))
        low += masked[i]
    shown = shown[:count]
    tagged = tags(state, shown) if len(state) else shown
    use = ~contains(maybe, tainted, old_tainted, tagged)
    rare = np.ones(count, np.bool_)
    first = np.zeros(count, np.bool_)
    learn(slots, shared, tagged, use, rare, first, mark)
    fresh = tagged[first] if len(state) else tagged[:0]
    kept = 0
    common = 0
    for i in range(count):
        at = positions[i]
        positions[kept] = at
        shown[kept] = shown[i] ^ salt
        kept += picked[at] & rare[i]
        common += picked[at] & (not rare[i])
    return positions[:kept], shown[:kept], fresh, low, common
