"""From single tokens to the shingles that lie in them as a whole."""

import numpy as np

from detector.sketch.shingle import Mask


def windows(flags: Mask, width: int) -> Mask:
    """True where `width` consecutive flags are all True, shape (n - width + 1,)."""
    if len(flags) < width:
        return np.empty(0, np.bool_)
    sums = np.concatenate([[0], np.cumsum(flags)])
    return (sums[width:] - sums[:-width]) == width  # type: ignore[no-any-return]
