"""Token ids to fingerprints in one pass over each sequence of a batch (numba).

Bit-identical to `detector/sketch/flat.py`. A sequence goes tile by tile through buffers that stay
in the cache; tiles overlap by what one window and one shingle need.
"""

import numpy as np

from detector.kernels.cache import njit
from detector.kernels.shingle import count_repeats, fill_keys, is_repetitive
from detector.kernels.shingle import shingles as shingles_of
from detector.kernels.winnow import picks, sample
from detector.sketch.batch import Fingerprints, Shingles, TokenBatch, offsets_of
from detector.sketch.shingle import SHINGLE_TOKENS

TILE = 4096
"""Windows per tile: 37 bytes of buffers for each, 150 KB that stay in any L2 cache."""

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


def shingles(batch: TokenBatch, *, min_distinct: int, window: int | None) -> Shingles:
    """Return every shingle, those of low complexity, and with a window the sample to index."""
    hashes = batch.tokens if batch.table is None else batch.table[batch.tokens]
    keys, masked, picked = _shingles(hashes, batch.offsets, min_distinct, window or 0)
    return Shingles(keys, masked, None if window is None else picked, batch.offsets)


@njit(nogil=True, cache=True)
def _shingles(hashes, offsets, min_distinct, window):
    keys = np.zeros(len(hashes), np.int64)
    masked = np.zeros(len(hashes), np.bool_)
    picked = np.zeros(len(hashes) if window else 0, np.bool_)
    for s in range(len(offsets) - 1):
        begin = offsets[s]
        found, low = shingles_of(hashes[begin : offsets[s + 1]], min_distinct)
        keys[begin : begin + len(found)] = found
        masked[begin : begin + len(found)] = low
        if window:
            picked[begin : begin + len(found)] = sample(found, low, window)
    return keys, masked, picked


@njit(nogil=True, cache=True)
def _fingerprints(tokens, table, offsets, window, min_distinct):
    most = TILE + window - 1
    hashes = np.empty(most + _K - 1, np.uint32)
    repeats = np.empty(most + _K - 1, np.uint8)
    tile_keys = np.empty(most, np.int64)
    scratch = np.empty((3, most + 2 * window), np.int64)
    keys = np.empty(len(tokens), np.int64)
    positions = np.empty(len(tokens) + window, np.int32)
    counts = np.zeros(len(offsets) - 1, np.int64)
    written = 0
    for s in range(len(offsets) - 1):
        first = written
        count = offsets[s + 1] - offsets[s] - _K + 1
        if count < 1:
            continue
        newest = -1
        for tile in range(0, max(count - window + 1, 1), TILE):
            filled = min(count - tile, most)
            begin = offsets[s] + tile
            if len(table):
                for i in range(filled + _K - 1):
                    hashes[i] = table[tokens[begin + i]]
            else:
                for i in range(filled + _K - 1):
                    hashes[i] = tokens[begin + i]
            fill_keys(hashes, filled + _K - 1, tile_keys)
            count_repeats(hashes, filled + _K - 1, repeats)
            picked = picks(tile_keys[:filled], window, positions[written:], scratch)
            kept = written
            for i in range(written, written + picked):
                at = positions[i]
                if tile + at == newest:
                    continue  # the tile before has picked it as well
                newest = tile + at
                # what repeats nothing is distinct; only where that does not suffice, compare
                if repeats[at] > _K - min_distinct and is_repetitive(hashes, at, min_distinct):
                    continue
                keys[kept] = tile_keys[at]
                positions[kept] = newest
                kept += 1
            written = kept
        counts[s] = written - first
    return keys[:written], positions[:written], counts
