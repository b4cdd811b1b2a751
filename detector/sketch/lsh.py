"""How many bands of how many rows: the trade of an LSH index between missing and over-reporting.

A pair of Jaccard similarity s shares at least one of b bands of r rows with probability
1 - (1 - s^r)^b. The best (b, r) for a threshold is the one with the least area under that curve
below it (false candidates) and above it (misses), as datasketch chooses it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detector.errors import SettingsError

_Curve = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class BandShape:
    """`bands` bands of `rows` sketch values each; what is left over of the sketch is not used."""

    bands: int
    rows: int

    def probability(self, similarity: float) -> float:
        """Return how likely a pair of that Jaccard similarity is to be a candidate."""
        return float(1 - (1 - similarity**self.rows) ** self.bands)


def best_shape(threshold: float, num_perm: int, *, false_positive_weight: float = 0.5) -> BandShape:
    """Return the shape with the least weighted error at a threshold of Jaccard similarity.

    The weight of misses is 1 - false_positive_weight. On a tie the fewest bands win, then the
    fewest rows. Raises SettingsError for a threshold outside 0..1.
    """
    if not 0.0 <= threshold <= 1.0:
        raise SettingsError(
            f"the similarity threshold is {threshold}", hint="give a number from 0 to 1"
        )
    # the curve is a polynomial of degree b * r <= num_perm, which this many nodes integrate exactly
    nodes, weights = np.polynomial.legendre.leggauss(num_perm // 2 + 1)
    below = (nodes + 1) / 2 * threshold
    above = threshold + (nodes + 1) / 2 * (1 - threshold)
    least, best = float("inf"), BandShape(1, 1)
    for bands in range(1, num_perm + 1):
        for rows in range(1, num_perm // bands + 1):
            false_positives = np.dot(weights, _candidates(below, bands, rows)) * threshold / 2
            misses = np.dot(weights, 1 - _candidates(above, bands, rows)) * (1 - threshold) / 2
            error = float(
                false_positives * false_positive_weight + misses * (1 - false_positive_weight)
            )
            if error < least:
                least, best = error, BandShape(bands, rows)
    return best


def _candidates(similarity: _Curve, bands: int, rows: int) -> _Curve:
    curve: _Curve = 1 - (1 - similarity**rows) ** bands
    return curve
