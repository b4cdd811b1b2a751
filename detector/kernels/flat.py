"""Token ids to fingerprints in one pass over each sequence of a batch (numba).

Bit-identical to `detector/sketch/flat.py`. A sequence is hashed into a buffer that stays in the
cache, then scanned.
"""

import numpy as np
from numba import njit

from detector.kernels.shingle import count_repeats, fill_keys, is_repetitive
from detector.kernels.winnow import picks
from detector.sketch.batch import Fingerprints, TokenBatch, offsets_of
from detector.sketch.shingle import SHINGLE_TOKENS

_K = SHINGLE_TOKENS


def fingerprints(batch: TokenBatch, *, window: int, min_distinct: int) -> Fingerprints:
    """Return the fingerprints that `winnow` picks per sequence, less those of low complexity.

    A window of 1 keeps every shingle.
    """
    table = np.empty(0, np.uint32) if batch.table is None else batch.table
    keys, positions, counts = _fingerprints(
        batch.tokens, table, batch.offsets, window, min_distinct
    )
    return Fingerprints(keys, positions, offsets_of(counts))


@njit(nogil=True, cache=True)
def _fingerprints(tokens, table, offsets, window, min_distinct):
    sequences = len(offsets) - 1
    longest = 0
    for s in range(sequences):
        longest = max(longest, offsets[s + 1] - offsets[s])
    hashes = np.empty(longest, np.uint32)
    sequence_keys = np.empty(longest, np.int64)
    repeats = np.empty(longest, np.uint8)
    scratch = np.empty((3, longest + 2 * window), np.int64)
    keys = np.empty(len(tokens), np.int64)
    positions = np.empty(len(tokens), np.int32)
    counts = np.zeros(sequences, np.int64)
    written = 0
    for s in range(sequences):
        begin = offsets[s]
        total = offsets[s + 1] - begin
        if total < _K:
            continue
        if len(table):
            for i in range(total):
                hashes[i] = table[tokens[begin + i]]
        else:
            hashes[:total] = tokens[begin : begin + total]
        fill_keys(hashes, total, sequence_keys)
        count_repeats(hashes, total, repeats)
        picked = picks(sequence_keys[: total - _K + 1], window, positions[written:], scratch)
        kept = written
        for i in range(written, written + picked):
            at = positions[i]
            # what repeats nothing is distinct; only where that does not suffice, compare
            if repeats[at] > _K - min_distinct and is_repetitive(hashes, at, min_distinct):
                continue
            keys[kept] = sequence_keys[at]
            positions[kept] = at
            kept += 1
        counts[s] = kept - written
        written = kept
    return keys[:written], positions[:written], counts
