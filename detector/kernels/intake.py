"""One pass over a new sequence: its shingles, which of them are tainted or common (numba)."""

import numpy as np

from detector.kernels.cache import njit
from detector.kernels.shingle import shingles
from detector.kernels.tenants import contains, learn


@njit(nogil=True, cache=True)
def take(
    tokens, min_distinct, maybe, tainted, tainted_homes, old_tainted, old_tainted_homes,
    slots, homes, shared, counts, mark, postings, places, salt,
):  # fmt: skip
    """Shingle a sequence and learn it; return (keys, masked, rare) as `learn_shown` does."""
    keys, masked = shingles(tokens, min_distinct)
    rare = learn_shown(
        keys, masked, maybe, tainted, tainted_homes, old_tainted, old_tainted_homes,
        slots, homes, shared, counts, mark, postings, places, salt,
    )  # fmt: skip
    return keys, masked, rare


@njit(nogil=True, cache=True)
def learn_shown(
    keys, masked, maybe, tainted, tainted_homes, old_tainted, old_tainted_homes,
    slots, homes, shared, counts, mark, postings, places, salt,
):  # fmt: skip
    """Return `rare`, True where a shingle is neither masked nor common for everybody.

    What is neither masked nor tainted is learned under `mark`.
    """
    rare = ~masked
    use = rare.copy()
    found = contains(maybe, tainted, tainted_homes, old_tainted, old_tainted_homes, keys)
    for i in range(len(keys)):
        use[i] &= not found[i]
    learn(slots, homes, shared, counts, keys, use, rare, mark, postings, places, salt)
    return rare


def nothing_follows() -> "tuple[np.ndarray[tuple[int], np.dtype[np.int64]], int, np.int64]":
    """Return the postings, places and salt to name where no table is asked afterwards."""
    return np.zeros(1, np.int64), 0, np.int64(0)
