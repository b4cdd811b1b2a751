"""Bottom-k sketches: the k smallest tags of a set, a sample of it that any two sets agree on.

The k smallest tags of the union of two sets are known from both sketches, and of each it is known
in which set it is: a uniform sample of the union (Cohen and Kaplan, 2007). So a share J of the
union is estimated with a standard deviation of sqrt(J * (1 - J) / k), and exactly where the union
has no more than k elements. Elements may carry a flag, which a MinHash value cannot.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detector.sketch.shingle import Keys

Values = NDArray[np.uint32]
"""Distinct high halves of 64-bit tags, ascending. Two of 131,072 elements share one with
probability 3 * 10^-5, which moves no estimate."""


def high_halves(tags: Keys) -> Values:
    """Return the high half of every tag, in the order of the tags."""
    return (tags.view(np.uint64) >> np.uint64(32)).astype(np.uint32)


class Sample(NamedTuple):
    """A uniform sample of the union of two sets: its values, and which set has each."""

    values: Values
    in_first: NDArray[np.bool_]
    in_second: NDArray[np.bool_]

    def without(self, explained: Values) -> "Sample":
        """Return the sample of what is left when these values are taken out of both sets."""
        kept = ~np.isin(self.values, explained)
        return Sample(self.values[kept], self.in_first[kept], self.in_second[kept])

    @property
    def jaccard(self) -> float:
        """The estimated Jaccard similarity of the two sets; 0.0 of two empty ones."""
        shared = int(np.count_nonzero(self.in_first & self.in_second))
        return shared / max(len(self.values), 1)

    @property
    def containment(self) -> float:
        """The estimated share of the second set that the first one holds."""
        shared = int(np.count_nonzero(self.in_first & self.in_second))
        return shared / max(int(np.count_nonzero(self.in_second)), 1)


def sample(first: Values, second: Values, k: int) -> Sample:
    """Return the sample that two sketches of k values at most give of the union of their sets."""
    both = np.union1d(first, second)[:k]
    return Sample(both, np.isin(both, first), np.isin(both, second))


def smaller_containment(first: Values, second: Values, k: int, *, sizes: tuple[int, int]) -> float:
    """Return the estimated share of the smaller set that the larger one holds, 0 to 1."""
    smaller = min(sizes)
    if not smaller:
        return 0.0
    jaccard = sample(first, second, k).jaccard
    return min(jaccard / (1 + jaccard) * sum(sizes) / smaller, 1.0)
