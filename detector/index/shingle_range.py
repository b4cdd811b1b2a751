"""One range of shingle tags: who has shown them anywhere, and which of them are shared.

Exactly one worker owns a range. It is a function of the showings told to it, in any order and any
number of times, so a new owner makes it again by reading them once more.
"""

import numpy as np

from detector.index.showings import NO_SHOWINGS, Showings
from detector.index.taint import TaintedShingles
from detector.index.tenant_table import TenantTable
from detector.kernels import showings as kernel


class ShingleRange:
    """The parties that have shown the tags of one range; tells of every tag that two have shown."""

    def __init__(
        self, *, horizon_ms: int, refresh_ms: int, memory_bytes: int, tainted: TaintedShingles
    ) -> None:
        self._table = TenantTable(horizon_ms=horizon_ms, memory_bytes=memory_bytes)
        self._refresh_s = refresh_ms // 1000
        self._tainted = tainted

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._table.nbytes

    @property
    def since_ms(self) -> int | None:
        """Since when, in event time, the range is known without a gap; None while it is empty."""
        return self._table.since_ms

    @property
    def early_rotations(self) -> int:
        """How often the byte budget has made the memory shorter than its horizon."""
        return self._table.early_rotations

    def learn(self, shown: Showings, *, now_ms: int) -> Showings:
        """Record showings, and return the marks that every worker must hear of by them.

        Nothing is recorded or told of what is tainted; that outlives what was shown before it.
        `now_ms` is event time of the teller; it decides what is forgotten and may go back.
        """
        count = len(shown.tags)
        if not count:
            return NO_SHOWINGS
        use = ~self._tainted.contains(shown.tags)
        room = self._table.room_for(count, now_ms)
        old = self._table.tables[2:]
        tags, marks = np.empty((2, kernel.MOST_TOLD * count), np.int64)
        told = kernel.tell(*room, *old, shown.tags, use, shown.marks, self._refresh_s, tags, marks)
        return Showings(tags[:told].copy(), marks[:told].copy())
