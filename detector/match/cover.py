"""From single shingles to the tokens they cover, and back."""

import numpy as np
from numpy.typing import NDArray

from detector.sketch.shingle import SHINGLE_TOKENS, Mask


def windows(flags: Mask, width: int) -> Mask:
    """True where `width` consecutive flags are all True, shape (n - width + 1,)."""
    if len(flags) < width:
        return np.empty(0, np.bool_)
    sums = np.concatenate([[0], np.cumsum(flags)])
    return (sums[width:] - sums[:-width]) == width  # type: ignore[no-any-return]


def cover(starts: NDArray[np.int64], length: int) -> Mask:
    """True for every token that lies in a shingle beginning at one of the distinct `starts`."""
    steps = np.zeros(length + SHINGLE_TOKENS + 1, np.int64)
    steps[starts] += 1
    steps[starts + SHINGLE_TOKENS] -= 1
    return np.cumsum(steps)[:length] > 0
