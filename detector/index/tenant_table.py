"""The day-long memory: which parties have shown a shingle, and when first.

One instance answers "is this common?" and "did the receiver have it before?"; another holds the
tainted shingles with the party they came from. Two generations of one horizon each stand behind
one another and every showing goes into the newer one: a key lives one to two horizons after it was
last shown, and expiry drops a whole generation at once. When the byte budget forces an early
change, the memory is shorter: see `early_rotations`.
"""

import numpy as np
from numpy.typing import NDArray

from detector.kernels import tenants
from detector.kernels.buckets import ROWS, new_table
from detector.kernels.intake import nothing_follows
from detector.sketch.shingle import Keys, Mask

Marks = NDArray[np.int64]

LOAD_LIMIT = 0.65
GROWTH = 1.5
"""At 16 bytes a row: 25 to 37 bytes per remembered shingle."""

_FIRST_HOMES = 1 << 13
_BUCKET_BYTES = 64


class _Generation:
    """One table with its shared rows; grows as it fills."""

    def __init__(self, homes: int, shared: int) -> None:
        self.homes = homes
        self.slots = new_table(homes) if homes else np.zeros(0, np.int64)
        self.shared = np.zeros((shared, tenants.MARKS), np.int64)
        self.counts = np.zeros(2, np.int64)

    @property
    def nbytes(self) -> int:
        return int(self.slots.nbytes + self.shared.nbytes)

    def has_room(self, keys: int) -> bool:
        """True while that many more keys stay within the load limit."""
        return bool(self.counts[0] + keys <= self.homes * ROWS * LOAD_LIMIT)

    def bytes_after(self, keys: int) -> int:
        """Bytes this generation would take with room for that many more keys."""
        homes = self.homes if self.has_room(keys) else self._homes_for(keys)
        grown = (homes - self.homes) * _BUCKET_BYTES
        rows = len(self.shared)
        while self.counts[1] + keys > rows:
            rows *= 2
        return (
            self.nbytes + grown + (rows - len(self.shared)) * self.shared.itemsize * tenants.MARKS
        )

    def make_room(self, keys: int) -> None:
        """Grow until that many more keys fit, even if each of them becomes shared."""
        if not self.has_room(keys):
            old = self.slots
            self.homes = self._homes_for(keys)
            self.slots = new_table(self.homes)
            tenants.rehash(old, self.slots, self.homes)
        while self.counts[1] + keys > len(self.shared):
            self.shared = np.concatenate([self.shared, np.zeros_like(self.shared)])

    def _homes_for(self, keys: int) -> int:
        return int(max(self.homes * GROWTH, (self.counts[0] + keys) / (ROWS * LOAD_LIMIT) * GROWTH))


class TenantTable:
    """Which parties have shown a shingle within the horizon, up to four each."""

    def __init__(self, *, horizon_ms: int, memory_bytes: int) -> None:
        self._horizon_ms = horizon_ms
        self._memory_bytes = memory_bytes
        self._new = _Generation(_FIRST_HOMES, _FIRST_HOMES // 2)
        self._old = _Generation(0, 1)
        self._began_ms: int | None = None
        self.since_ms: int | None = None
        """Since when this memory is without a gap, None before the first showing."""
        self.early_rotations = 0

    @property
    def nbytes(self) -> int:
        """Bytes held by both generations."""
        return self._new.nbytes + self._old.nbytes

    @property
    def is_empty(self) -> bool:
        """True while no key was ever learned or all were forgotten."""
        return not (self._new.counts[0] or self._old.counts[0])

    def learn(self, keys: Keys, use: Mask, *, party: int, seen_ms: int, now_ms: int) -> None:
        """Record that `party` has shown the used keys at `seen_ms`; both times are event time.

        `now_ms` is the time that others agree on and never goes back: it alone decides what is
        forgotten, so that one wrong clock does not empty the memory.
        """
        room = self.room_for(len(keys), now_ms)
        rare, first = np.zeros((2, len(keys)), np.bool_)
        mark = mark_of(party, seen_ms)
        tenants.learn(*room, keys, use, rare, first, mark, keys, *nothing_follows())

    def room_for(self, keys: int, now_ms: int) -> tuple[Marks, int, Marks, NDArray[np.int64]]:
        """Make room for that many keys; return the newer generation as the kernels take it."""
        self._rotate_if_due(keys, now_ms)
        new = self._new
        new.make_room(keys)
        return new.slots, new.homes, new.shared, new.counts

    def reach_back(self, since_ms: int) -> None:
        """Note that others have told what was shown since an instant."""
        if self.since_ms is not None:
            self.since_ms = min(self.since_ms, since_ms)

    def unlearn(self, keys: Keys, *, party: int, since_ms: int) -> None:
        """Take back that `party` has shown these keys: they turned out to be somebody else's.

        What it had shown before `since_ms` stays.
        """
        for one in (self._new, self._old):
            tenants.unlearn(one.slots, one.homes, one.shared, keys, party, since_ms // 1000)

    @property
    def tables(self) -> tuple[Marks, int, Marks, Marks, int, Marks]:
        """Both generations as kernels take them: rows, homes and shared rows of each."""
        new, old = self._new, self._old
        return new.slots, new.homes, new.shared, old.slots, old.homes, old.shared

    def lookup(self, keys: Keys) -> Marks:
        """Return the marks of every key, shape (n, 8), packed as the kernel describes."""
        return tenants.lookup(*self.tables, keys)  # type: ignore[no-any-return]

    def _rotate_if_due(self, keys: int, now_ms: int) -> None:
        if self._began_ms is None:
            self._began_ms = self.since_ms = now_ms
        age_ms = now_ms - self._began_ms
        if age_ms >= 2 * self._horizon_ms:
            self._old = self._new = _Generation(0, 1)
            self._began_ms = now_ms
        full = self._new.bytes_after(keys) > self._memory_bytes // 2 and self._new.counts[0] > 0
        if age_ms < self._horizon_ms and not full:
            return
        self.early_rotations += full and age_ms < self._horizon_ms
        self.since_ms, self._began_ms = self._began_ms, now_ms
        self._old = self._new
        # days resemble each other: the size of the last one saves growing through all sizes again
        self._new = _Generation(max(self._old.homes, _FIRST_HOMES), len(self._old.shared))


def mark_of(party: int, seen_ms: int) -> np.int64:
    """Return the mark of a party that has shown something at an instant of event time."""
    seconds = min(max(seen_ms // 1000 + tenants.TIME_OFFSET, 0), (1 << tenants.TIME_BITS) - 1)
    return np.int64((party + 1) << tenants.TIME_BITS | seconds)


def parties(marks: Marks) -> NDArray[np.int64]:
    """Return the party of every mark, -1 where there is none."""
    return (marks >> tenants.TIME_BITS) - 1
