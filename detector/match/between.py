"""What a sample of shingles tells of the shingles between them."""

import numpy as np
from numpy.typing import NDArray

from detector.match.reasons import UNEXPLAINED
from detector.sketch.shingle import Mask

Codes = NDArray[np.uint8]
"""Reasons by number, UNEXPLAINED where there is none."""


def spread(codes: Codes, known: Mask) -> Codes:
    """Return the codes; those that are not known are taken from the nearest known neighbours.

    What lies between is explained if one of them is: the text that explains it may reach so far.
    """
    count = len(codes)
    at = np.arange(count)
    left = np.maximum.accumulate(np.where(known, at, -1))
    right = np.minimum.accumulate(np.where(known, at, count)[::-1])[::-1]
    beside = np.append(codes, np.uint8(UNEXPLAINED))  # at index -1 and count: beyond both ends
    return np.where(beside[left] == UNEXPLAINED, beside[right], beside[left])
