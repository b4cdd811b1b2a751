"""The hits of a sink: those of one source, their codes completed and counted (numba)."""

import numpy as np

from detector.kernels.cache import njit
from detector.kernels.explain import UNEXPLAINED


@njit(nogil=True, cache=True)
def of_source(source, sources, source_at, sink_at, codes, by_pair):
    """Return (source_at, sink_at, codes) of the unexplained hits of one source.

    Their codes are what is true of the pair: one for every place in the source.
    """
    count = 0
    mine = np.empty(len(codes), np.int64)
    for h in range(len(codes)):
        mine[count] = h
        count += (sources[h] == source) & (codes[h] == UNEXPLAINED)
    mine = mine[:count]
    return source_at[mine], sink_at[mine], by_pair[source_at[mine]]


@njit(nogil=True, cache=True)
def complete(codes, by_pair, source_at):
    """Give what nothing explains the code that is true of the pair at its place in the source."""
    for h in range(len(codes)):
        if codes[h] == UNEXPLAINED:
            codes[h] = by_pair[source_at[h]]


@njit(nogil=True, cache=True)
def tally(codes, counts):
    """Add to the count of each code; return how many are unexplained."""
    before = counts[UNEXPLAINED]
    for code in codes:
        counts[code] += 1
    return counts[UNEXPLAINED] - before


@njit(nogil=True, cache=True)
def distinct_of(ascending, use):
    """Return how many distinct values, which ascend, are used."""
    count = 0
    before = np.int64(-1)
    for i in range(len(ascending)):
        if use[i] and (count == 0 or ascending[i] != before):
            before = ascending[i]
            count += 1
    return count
