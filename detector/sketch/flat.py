"""Fingerprints of a whole batch at once (numpy), with no Python per sequence.

The torch path takes the same steps. Keys are computed over the flat array; those that touch two
sequences are never picked.
"""

import numpy as np
from numpy.typing import NDArray

from detector.sketch.batch import Fingerprints, Shingles, TokenBatch, chunks, joined, offsets_of
from detector.sketch.shingle import SHINGLE_TOKENS, Keys, low_complexity, shingle_keys
from detector.sketch.winnow import NEVER_PICKED

CHUNK_TOKENS = 32_768
"""Tokens worked on at a time, in whole sequences: what the steps hold stays in the L2 cache."""

LEAST = np.iinfo(np.int64).min
"""Stands for a window that does not lie in one sequence: no window is smaller."""

_Positions = NDArray[np.int64]


def fingerprints(batch: TokenBatch, *, window: int, min_distinct: int) -> Fingerprints:
    """Return the fingerprints that `winnow` picks per sequence, less those of low complexity.

    A window of 1 keeps every shingle.
    """
    parts = []
    for starts in chunks(batch.offsets, CHUNK_TOKENS):
        tokens = batch.tokens[starts[0] : starts[-1]]
        hashes = tokens if batch.table is None else batch.table[tokens]
        parts.append(_chunk(hashes, starts - starts[0], window, min_distinct))
    return joined(parts)


def shingles(batch: TokenBatch, *, min_distinct: int, window: int | None) -> Shingles:
    """Return every shingle, those of low complexity, and with a window the sample to index.

    In the sample a shingle of low complexity is never picked: `detector/kernels/winnow.py`.
    """
    count = len(batch.tokens)
    keys, masked = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    picked = None if window is None else np.zeros(count, np.bool_)
    for starts in chunks(batch.offsets, CHUNK_TOKENS):
        tokens = batch.tokens[starts[0] : starts[-1]]
        hashes = tokens if batch.table is None else batch.table[tokens]
        part = slice(starts[0], max(starts[-1] - (SHINGLE_TOKENS - 1), starts[0]))
        keys[part] = shingle_keys(hashes)
        masked[part] = low_complexity(hashes, min_distinct)
        if picked is not None and window is not None:
            begins = starts[:-1] - starts[0]
            ends = np.maximum(starts[1:] - starts[0] - (SHINGLE_TOKENS - 1), begins)
            ranked = np.where(masked[part], NEVER_PICKED, keys[part])
            picked[starts[0] + flat_winnow(ranked, begins, ends, window)] = True
    return Shingles(keys, masked, None if picked is None else picked & ~masked, batch.offsets)


def _chunk(
    hashes: NDArray[np.uint32], offsets: _Positions, window: int, min_distinct: int
) -> Fingerprints:
    keys = shingle_keys(hashes)
    key_ends = np.maximum(offsets[1:] - (SHINGLE_TOKENS - 1), offsets[:-1])
    picks = flat_winnow(keys, offsets[:-1], key_ends, window)
    picks = picks[~low_complexity(hashes, min_distinct)[picks]]
    ends = np.searchsorted(picks, offsets)
    starts = np.repeat(offsets[:-1], np.diff(ends))
    return Fingerprints(keys[picks], (picks - starts).astype(np.int32), ends)


def flat_winnow(keys: Keys, starts: _Positions, ends: _Positions, window: int) -> _Positions:
    """Return the positions in `keys` that `winnow` picks in each range starts[i]..ends[i].

    The ranges are disjoint and ascending; keys between them are ignored. A key is picked when some
    window holds no smaller one: when the greatest minimum of the windows around it is the key
    itself. Of equal keys in one window only the rightmost counts. Two such keys follow one another
    among the candidates, because nothing between them is smaller and what is greater has no window
    to itself; the left one stays exactly when the window that ends before the right one has it.
    """
    counts = ends - starts
    whole = counts >= window
    picks = np.empty(0, np.int64)
    if whole.any():
        firsts, behind = starts[whole], ends[whole]
        minima = _sliding(keys, window, np.minimum)
        inside = np.zeros(len(minima) + 1, np.int8)
        inside[firsts] = 1
        inside[behind - window + 1] -= 1
        minima[~np.cumsum(inside[:-1], dtype=np.int8).view(np.bool_)] = LEAST
        picks = _rightmost(keys, minima, firsts, behind, window)
    short = (counts > 0) & ~whole
    if short.any():
        picks = np.sort(np.concatenate([picks, _short(keys, starts[short], counts[short])]))
    return picks


def _rightmost(
    keys: Keys, minima: Keys, firsts: _Positions, behind: _Positions, window: int
) -> _Positions:
    padding = np.full(window - 1, LEAST)
    greatest = _sliding(np.concatenate([padding, minima, padding]), window, np.maximum)
    picks = np.flatnonzero(greatest == keys)
    place = np.searchsorted(firsts, picks, side="right") - 1
    picks = picks[(place >= 0) & (picks < behind[place])]
    if window == 1 or len(picks) < 2:
        return picks
    left, right = picks[:-1], picks[1:]
    tied = np.flatnonzero((keys[left] == keys[right]) & (right - left < window))
    if not len(tied):
        return picks
    first = firsts[np.searchsorted(firsts, right[tied], side="right") - 1]
    same = left[tied] >= first
    has_window = right[tied] - window >= first
    before = minima[np.maximum(right[tied] - window, 0)] == keys[left[tied]]
    return np.delete(picks, tied[same & ~(has_window & before)])


def _sliding(values: Keys, window: int, step: np.ufunc) -> Keys:
    """Return step.reduce of every `window` neighbours, by doubling, as a new array."""
    reduced, width = values.copy() if window == 1 else values, 1
    while width < window:
        shift = min(width, window - width)
        reduced = step(reduced[: len(reduced) - shift], reduced[shift:])
        width += shift
    return reduced


def _short(keys: Keys, starts: _Positions, counts: _Positions) -> _Positions:
    """Return the rightmost minimum of each range; for ranges shorter than one window."""
    offsets = offsets_of(counts)
    at = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], counts)
    least = np.repeat(np.minimum.reduceat(keys[at], offsets[:-1]), counts)
    found: _Positions = np.maximum.reduceat(np.where(keys[at] == least, at, -1), offsets[:-1])
    return found
