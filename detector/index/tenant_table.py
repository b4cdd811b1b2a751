"""The day-long memory: which parties have shown a shingle, and when first.

One instance answers "is this common?" and "did the receiver have it before?"; another holds the
tainted shingles with the party they came from. Two generations of one horizon each stand behind
one another: a key lives one to two horizons after it was last shown, and expiry drops a whole
generation at once. When the byte budget forces an early change, the memory is shorter: see
`early_rotations`.
"""

import numpy as np
from numpy.typing import NDArray

from detector.kernels import tenants
from detector.kernels.postings import PADDING_ROWS
from detector.sketch.shingle import Keys, Mask

Marks = NDArray[np.int64]

LOAD_LIMIT = 0.75
GROWTH = 1.5
"""At 16 bytes a row: 21 to 32 bytes per remembered shingle."""

_FIRST_ROWS = 1 << 15
_ROW_BYTES = 16


class _Generation:
    """One table with its shared rows; grows as it fills."""

    def __init__(self, homes: int, shared: int) -> None:
        self.homes = homes
        self.slots = np.zeros((homes + PADDING_ROWS if homes else 0, 2), np.int64)
        self.shared = np.zeros((shared, tenants.MARKS), np.int64)
        self.counts = np.zeros(2, np.int64)

    @property
    def nbytes(self) -> int:
        return int(self.slots.nbytes + self.shared.nbytes)

    def bytes_after(self, keys: int) -> int:
        """Bytes this generation would take with room for that many more keys."""
        if self.counts[0] + keys <= self.homes * LOAD_LIMIT:
            return self.nbytes
        return self.nbytes + (self._homes_for(keys) - self.homes) * _ROW_BYTES

    def make_room(self, keys: int) -> None:
        if self.counts[0] + keys <= self.homes * LOAD_LIMIT:
            return
        old = self.slots
        self.homes = self._homes_for(keys)
        self.slots = np.zeros((self.homes + PADDING_ROWS, 2), np.int64)
        tenants.rehash(old, self.slots, self.homes)

    def grow_shared(self) -> None:
        self.shared = np.concatenate([self.shared, np.zeros_like(self.shared)])

    def _homes_for(self, keys: int) -> int:
        return int(max(self.homes * GROWTH, (self.counts[0] + keys) / LOAD_LIMIT * GROWTH))


class TenantTable:
    """Which parties have shown a shingle within the horizon, up to four each."""

    def __init__(self, *, horizon_ms: int, memory_bytes: int) -> None:
        self._horizon_ms = horizon_ms
        self._memory_bytes = memory_bytes
        self._new = _Generation(_FIRST_ROWS, _FIRST_ROWS // 8)
        self._old = _Generation(0, 1)
        self._began_ms: int | None = None
        self.early_rotations = 0

    @property
    def nbytes(self) -> int:
        """Bytes held by both generations."""
        return self._new.nbytes + self._old.nbytes

    @property
    def is_empty(self) -> bool:
        """True while no key was ever learned or all were forgotten."""
        return not (self._new.counts[0] or self._old.counts[0])

    def learn(self, keys: Keys, use: Mask, *, party: int, seen_ms: int) -> None:
        """Record that `party` has shown the used keys at `seen_ms` (event time)."""
        if not len(keys):
            return
        self._rotate_if_due(len(keys), seen_ms)
        new, old = self._new, self._old
        new.make_room(len(keys))
        seconds = min(max(seen_ms // 1000 + tenants.TIME_OFFSET, 0), (1 << tenants.TIME_BITS) - 1)
        mark = np.int64((party + 1) << tenants.TIME_BITS | seconds)
        following = 0
        while True:
            following = tenants.learn(
                new.slots, new.homes, new.shared, new.counts,
                old.slots, old.homes, old.shared, keys, use, following, mark,
            )  # fmt: skip
            if following == len(keys):
                return
            new.grow_shared()

    def unlearn(self, keys: Keys, *, party: int, since_ms: int) -> None:
        """Take back that `party` has shown these keys: they turned out to be somebody else's.

        What it had shown before `since_ms` stays.
        """
        new = self._new
        tenants.unlearn(new.slots, new.homes, new.shared, keys, party, since_ms // 1000)

    @property
    def tables(self) -> tuple[Marks, int, Marks, Marks, int, Marks]:
        """Both generations as kernels take them: rows, homes and shared rows of each."""
        new, old = self._new, self._old
        return new.slots, new.homes, new.shared, old.slots, old.homes, old.shared

    def lookup(self, keys: Keys) -> Marks:
        """Return the marks of every key, shape (n, 4), packed as the kernel describes."""
        return tenants.lookup(*self.tables, keys)  # type: ignore[no-any-return]

    def contains(self, keys: Keys) -> Mask:
        """True for every key that some party has shown."""
        new, old = self._new, self._old
        return tenants.contains(new.slots, new.homes, old.slots, old.homes, keys)  # type: ignore[no-any-return]

    def _rotate_if_due(self, keys: int, seen_ms: int) -> None:
        if self._began_ms is None:
            self._began_ms = seen_ms
        due = seen_ms - self._began_ms >= self._horizon_ms
        full = self._new.bytes_after(keys) > self._memory_bytes // 2 and self._new.counts[0] > 0
        if not due and not full:
            return
        self.early_rotations += full and not due
        self._began_ms = seen_ms
        self._old = self._new
        self._new = _Generation(_FIRST_ROWS, _FIRST_ROWS // 8)


def parties(marks: Marks) -> NDArray[np.int64]:
    """Return the party of every mark, -1 where there is none."""
    return (marks >> tenants.TIME_BITS) - 1
