"""Winnowing without branches (numba, bit-identical to `detector/sketch/winnow.py`).

A key is picked when the greatest minimum of the windows around it is the key itself; both the
minima and their maxima come by doubling, in passes that vectorise. `detector/sketch/flat.py` says
why ties need only a look at the next candidate.
"""

import numpy as np

from detector.kernels.cache import njit
from detector.sketch.winnow import NEVER_PICKED

_LEAST = np.int64(np.iinfo(np.int64).min)


@njit(nogil=True, cache=True)
def sample(keys, masked, window):
    """Return which keys to index: those `winnow` picks when it ranks the masked ones last.

    A pick on a masked key would be lost, and with it the guarantee.
    """
    ranked = keys.copy()
    for i in range(len(keys)):
        if masked[i]:
            ranked[i] = NEVER_PICKED
    picked = winnow(ranked, window)
    for i in range(len(keys)):
        picked[i] &= not masked[i]
    return picked


@njit(nogil=True, cache=True)
def remembered(keys, masked, window, limit):
    """Return which keys are remembered: those to index, and all that are at most `limit`.

    A window of 0 indexes all that are not masked, which are never remembered.
    """
    known = sample(keys, masked, window) if window else ~masked
    for i in range(len(keys)):
        known[i] |= (not masked[i]) & (keys[i] <= limit)
    return known


@njit(nogil=True, cache=True)
def winnow(keys, window):
    """Return True for each picked key: the rightmost minimum of every `window` keys, shape (n,)."""
    picked = np.zeros(len(keys), np.bool_)
    positions = np.empty(len(keys), np.int32)
    scratch = np.empty((3, len(keys) + 2 * window), np.int64)
    for i in range(picks(keys, window, positions, scratch)):
        picked[positions[i]] = True
    return picked


@njit(nogil=True, cache=True)
def picks(keys, window, positions, scratch):
    """Write the picked positions, ascending; return how many there are.

    `scratch` has three rows of at least len(keys) + 2 * window values, `positions` has room for
    every key.
    """
    count = len(keys)
    if count < window:
        return _only_window(keys, positions)
    minima, greatest = _slide_down(keys, scratch[0], scratch[1], window)
    _pad(minima, greatest, count, window)
    greatest = _slide_up(greatest, scratch[2], count + window - 1, window)
    candidates = 0
    for i in range(count):
        positions[candidates] = i
        candidates += greatest[i] == keys[i]
    written = 0
    for i in range(candidates - 1):
        at = positions[i]
        right = positions[i + 1]
        positions[written] = at
        written += 1
        if keys[right] == keys[at] and right - at < window:
            written -= right < window or minima[right - window] != keys[at]
    positions[written] = positions[candidates - 1]
    return written + 1


@njit(nogil=True, cache=True)
def _only_window(keys, positions):
    if len(keys) == 0:
        return 0
    at = 0
    for i in range(1, len(keys)):
        if keys[i] <= keys[at]:
            at = i
    positions[0] = at
    return 1


@njit(nogil=True, cache=True)
def _slide_down(keys, values, spare, window):
    """Return (minima of every window of the keys, the other buffer)."""
    for i in range(len(keys)):
        values[i] = keys[i]
    width = 1
    while width < window:
        shift = min(width, window - width)
        width += shift
        left = values[: len(keys) - width + 1]
        right = values[shift : len(keys) - width + 1 + shift]
        for i in range(len(left)):
            spare[i] = min(left[i], right[i])
        values, spare = spare, values
    return values, spare


@njit(nogil=True, cache=True)
def _pad(minima, padded, count, window):
    """Set padded[i + window - 1] to minima[i], with the least value where no window begins."""
    for i in range(window - 1):
        padded[i] = _LEAST
        padded[count + i] = _LEAST
    inner = padded[window - 1 : count]
    for i in range(len(inner)):
        inner[i] = minima[i]


@njit(nogil=True, cache=True)
def _slide_up(values, spare, count, window):
    """Return the maxima of every window, in either buffer."""
    width = 1
    while width < window:
        shift = min(width, window - width)
        width += shift
        left = values[: count - width + 1]
        right = values[shift : count - width + 1 + shift]
        for i in range(len(left)):
            spare[i] = max(left[i], right[i])
        values, spare = spare, values
    return values
