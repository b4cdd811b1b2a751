"""Which shingles are indexed and which are remembered for a day: every one, or a sample."""

from typing import NamedTuple

import numpy as np

from detector.kernels.winnow import remembered, sample
from detector.settings import IndexSettings
from detector.sketch.shingle import Keys, Mask

REMEMBERED_PER_WINDOW = 4
"""Keys of a window that are remembered whatever stands beside them, on average. The smallest key of
a window is one of them with a probability of 1 - e^-4 at least. Measured: of the picks of windows
of 8 one in 95 is not, of 16 one in 34, of 64 one in 14. With 3 instead of 4 half more of a stream
with stock phrases would have to be judged, and half more would be found."""

_GREATEST = np.iinfo(np.int64).max


class Sampling(NamedTuple):
    """What is indexed is picked by windows; what is picked or at most `limit` is remembered.

    A `window` of 0 picks every shingle. Those of low complexity are never picked or remembered.

    Of the picked ones those that are common are left out of the index: they are explained whoever
    meets in them, looking them up would be most of the work on stock phrases, and runs are extended
    over them. Leaving them out keeps the guarantee of winnowing. Take a run of window + 9 tokens or
    more that two sequences share and whose shingles are rare when the later one comes in. They were
    rare for the earlier one as well: while a shingle is remembered, parties are only added to it.
    The run holds a window of neighbouring shingles. What a window picks depends on nothing outside
    it, so both sequences pick the same shingle of it, at the same place of the run; it lies in the
    run, so it is rare and neither drops it.

    Picks are the smallest keys of their windows, so nearly all of them are at most `limit` and thus
    remembered wherever they stand. Were only picks remembered, a stock phrase shorter than
    window + 9 tokens would be known by another shingle in each context, which explains nothing.
    """

    window: int
    limit: np.int64

    @property
    def remembered_of(self) -> int:
        """Of which window a sample is remembered, 0 for every shingle.

        What a larger window remembers, a smaller one does as well, and not the other way round.
        """
        return 0 if self.limit == _GREATEST else self.window

    def picked(self, keys: Keys, masked: Mask) -> Mask:
        """Return which shingles of a sequence may be indexed."""
        return sample(keys, masked, self.window) if self.window else ~masked

    def remembered(self, keys: Keys, masked: Mask) -> Mask:
        """Return which shingles of a sequence the memory of a day takes."""
        return remembered(keys, masked, *self)  # type: ignore[no-any-return]


def sampling_of(settings: IndexSettings) -> Sampling:
    """Return what the settings of the index ask for."""
    window = 0 if settings.sampling == "every" else settings.winnow_window
    if window <= REMEMBERED_PER_WINDOW:
        return Sampling(window, np.int64(_GREATEST))
    share = REMEMBERED_PER_WINDOW / window
    return Sampling(window, np.int64((share - 0.5) * 2.0**64))
