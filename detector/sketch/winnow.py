"""Winnowing: pick few shingles so that every common run of w + 9 tokens still shares a pick."""

import numpy as np

from detector.sketch.shingle import Keys, Mask

NEVER_PICKED = np.int64(2**63 - 1)
"""Where shingles of low complexity sort when a sample of the others is wanted."""


def winnow(keys: Keys, window: int) -> Mask:
    """Return True for each picked shingle: the rightmost minimum of every `window` keys.

    Robust winnowing's guarantee (Schleimer, Wilkerson, Aiken, SIGMOD 2003): two sequences that
    share a run of window + 9 tokens pick the same shingle in it, at density 2 / (window + 1).
    Fewer keys than one window pick their minimum.
    """
    picks = np.zeros(len(keys), np.bool_)
    if not len(keys):
        return picks
    if len(keys) <= window:
        picks[len(keys) - 1 - int(np.argmin(keys[::-1]))] = True
        return picks
    views = np.lib.stride_tricks.sliding_window_view(keys[::-1], window)
    starts = np.arange(len(views))
    picks[len(keys) - 1 - (starts + np.argmin(views, axis=1))] = True
    return picks
