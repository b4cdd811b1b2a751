"""Extend a hit to the maximal common run on its diagonal, token by token (numba)."""

import numpy as np

from detector.kernels.cache import njit
from detector.sketch.shingle import SHINGLE_TOKENS


@njit(nogil=True, cache=True)
def extend(source, sink, source_at, sink_at, drop):
    """Return (begin, end): the run is sink[begin:end], on the diagonal of the given hit.

    Ungapped X-drop extension (Altschul et al. 1990, BLAST): a match scores +1, a mismatch -1, and
    each side stops when the score has fallen more than `drop` below its best. A gap of up to
    `drop` noisy tokens is bridged when at least as many matches and one more follow.
    """
    shift = source_at - sink_at
    end = sink_at
    score = 0
    best = 0
    i = sink_at
    while i < len(sink) and i + shift < len(source) and score >= best - drop:
        if sink[i] == source[i + shift]:
            score += 1
            if score > best:
                best = score
                end = i + 1
        else:
            score -= 1
        i += 1
    begin = sink_at
    score = 0
    best = 0
    i = sink_at - 1
    while i >= 0 and i + shift >= 0 and score >= best - drop:
        if sink[i] == source[i + shift]:
            score += 1
            if score > best:
                best = score
                begin = i
        else:
            score -= 1
        i -= 1
    return begin, end


@njit(nogil=True, cache=True)
def compare(source, sink, begin, end, diagonal):
    """Return (equal, starts) of the run sink[begin:end] on a diagonal.

    `equal` is True for each of its tokens that the source has as well, `starts` are the places in
    the sink where whole shingles of such tokens begin.
    """
    equal = np.empty(end - begin, np.bool_)
    starts = np.empty(end - begin, np.int64)
    found = 0
    tokens = 0
    for i in range(begin, end):
        same = sink[i] == source[i + diagonal]
        equal[i - begin] = same
        tokens = tokens + 1 if same else 0
        if tokens >= SHINGLE_TOKENS:
            starts[found] = i - SHINGLE_TOKENS + 1
            found += 1
    return equal, starts[:found]


@njit(nogil=True, cache=True)
def covered(starts, begin, end):
    """True for each token of [begin, end) in a shingle from one of `starts`, ascending."""
    tokens = np.zeros(end - begin, np.bool_)
    done = begin
    for i in range(len(starts)):
        for at in range(max(starts[i], done), min(starts[i] + SHINGLE_TOKENS, end)):
            tokens[at - begin] = True
        done = starts[i] + SHINGLE_TOKENS
    return tokens


@njit(nogil=True, cache=True)
def longest_chain(counts, bridge):
    """Return (tokens, begin, end) of the longest chain of counting tokens.

    Gaps of up to `bridge` tokens are bridged; only counting tokens are counted.
    """
    best = 0
    best_begin = 0
    best_end = 0
    tokens = 0
    begin = 0
    gap = 0
    for i in range(len(counts)):
        if counts[i]:
            if tokens == 0:
                begin = i
            tokens += 1
            gap = 0
            if tokens > best:
                best = tokens
                best_begin = begin
                best_end = i + 1
        else:
            gap += 1
            if gap > bridge:
                tokens = 0
    return best, best_begin, best_end


@njit(nogil=True, cache=True)
def holding(tokens, ends, wanted, anchor, least):
    """Return which texts hold `least` tokens of `wanted` where its first `anchor` tokens stand.

    The texts lie one behind another in `tokens`, each up to its end.
    """
    held = np.zeros(len(ends), np.bool_)
    begin = 0
    for text in range(len(ends)):
        one = tokens[begin : ends[text]]
        begin = ends[text]
        for at in range(len(one) - anchor + 1):
            if one[at] != wanted[0]:
                continue
            equal = 1
            while equal < anchor and one[at + equal] == wanted[equal]:
                equal += 1
            if equal == anchor:
                for i in range(anchor, min(len(wanted), len(one) - at)):
                    equal += one[at + i] == wanted[i]
                held[text] |= equal >= least
    return held


@njit(nogil=True, cache=True)
def diagonal_runs(source, sink, source_at, sink_at, drop):
    """Return the distinct runs of many hits of one pair, shape (runs, 3): begin, end, diagonal.

    They ascend by (diagonal, sink position); a hit inside the run found before it on the same
    diagonal adds nothing and costs nothing.
    """
    runs = np.empty((len(sink_at), 3), np.int64)
    found = 0
    for hit in np.sort((source_at - sink_at) << 32 | sink_at):
        diagonal = hit >> 32
        at = hit & 0xFFFFFFFF
        if found and runs[found - 1, 2] == diagonal and at < runs[found - 1, 1]:
            continue
        begin, end = extend(source, sink, at + diagonal, at, drop)
        runs[found, 0] = begin
        runs[found, 1] = end
        runs[found, 2] = diagonal
        found += 1
    return runs[:found]
