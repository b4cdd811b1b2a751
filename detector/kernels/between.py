"""What a sample of shingles tells of the shingles between them (numba)."""

import numpy as np

from detector.kernels.cache import njit


@njit(nogil=True, cache=True)
def spread(codes, known):
    """Return the codes; those that are not known are taken from the nearest known neighbours.

    That is the one before it, or the one behind it where that one is 0: what lies between is
    explained if one of them is, as the text that explains it may reach so far.
    """
    told = np.zeros(len(codes), np.uint8)
    before = np.uint8(0)
    for i in range(len(codes)):
        if known[i]:
            before = codes[i]
        told[i] = before
    behind = np.uint8(0)
    for i in range(len(codes) - 1, -1, -1):
        if known[i]:
            behind = codes[i]
        elif told[i] == 0:
            told[i] = behind
    return told
