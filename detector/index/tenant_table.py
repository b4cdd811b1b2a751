"""The day-long memory: which parties have shown a shingle, and when first.

One instance answers "is this common?" and "did the receiver have it before?"; another holds the
tainted shingles with the party they came from. Two generations of one horizon each stand behind
one another and every showing goes into the newer one: a key lives one to two horizons after it was
last shown, and expiry drops a whole generation at once. When the byte budget forces an early
change, the memory is shorter: see `early_rotations`.
"""

import numpy as np
from numpy.typing import NDArray

from detector.index.bucket_table import BucketTable, homes_within
from detector.kernels import tenants
from detector.kernels.buckets import OWN, ROWS
from detector.model import MAX_SEQUENCE_TOKENS
from detector.sketch.shingle import Keys, Mask

Marks = NDArray[np.int64]

LOAD_LIMIT = 0.65
GROWTH = 2.0
"""At 16 bytes a row and growth that begins at 0.585: 27 to 55 bytes per remembered shingle."""

_FIRST_HOMES = 1 << 13
_SHARED_BYTES = tenants.MARKS * 8


class _Generation:
    """One table with its shared rows; grows as it fills."""

    def __init__(self, nbytes: int, keys: int) -> None:
        """Take that many keys at once at least, whatever the budget in bytes."""
        self._most_bytes = nbytes
        most = max(homes_within(nbytes), int(keys / (ROWS * LOAD_LIMIT)) + 1)
        self.table = BucketTable(_FIRST_HOMES, most, limit=LOAD_LIMIT, growth=GROWTH)
        self.shared = np.zeros((max(nbytes // _SHARED_BYTES, keys), tenants.MARKS), np.int64)
        self._spare = 0

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + int(self.table.slots[OWN]) * _SHARED_BYTES

    def make_room(self, keys: int) -> bool:
        """Grow until that many more keys fit, even if each of them becomes shared.

        False when the budget does not allow it, which an empty generation does not ask.
        """
        if keys <= self._spare:
            self._spare -= keys
            return True
        if not self.table.rows:
            return self.table.make_room(keys)
        shared = (self.table.slots.item(OWN) + keys) * _SHARED_BYTES
        if self.table.nbytes + shared > self._most_bytes:
            return False
        # as the table fills, the shared rows grow with it: grown to the last byte, it would be full
        most = homes_within(self._most_bytes - int(GROWTH * shared))
        fits = self.table.make_room(keys, most=most)
        affordable = (self._most_bytes - self.nbytes) // _SHARED_BYTES
        self._spare = min(self.table.spare, affordable) - keys
        return fits


class TenantTable:
    """Which parties have shown a shingle within the horizon, up to four each."""

    def __init__(self, *, horizon_ms: int, memory_bytes: int) -> None:
        self._horizon_ms = horizon_ms
        self._most_bytes = memory_bytes // 2
        self._new = _Generation(self._most_bytes, MAX_SEQUENCE_TOKENS)
        self._old = _nothing()
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
        return not (self._new.table.rows or self._old.table.rows)

    def learn(self, keys: Keys, use: Mask, *, party: int, seen_ms: int, now_ms: int) -> None:
        """Record that `party` has shown the used keys at `seen_ms`; both times are event time.

        `now_ms` is the time that others agree on and never goes back: it alone decides what is
        forgotten, so that one wrong clock does not empty the memory.
        """
        room = self.room_for(len(keys), now_ms)
        rare, first = np.zeros((2, len(keys)), np.bool_)
        mark = mark_of(party, seen_ms)
        tenants.learn(*room, keys, use, rare, first, mark)

    def room_for(self, keys: int, now_ms: int) -> tuple[Marks, Marks]:
        """Make room for that many keys; return the newer generation as the kernels take it."""
        self._make_room(keys, now_ms)
        return self._new.table.slots, self._new.shared

    def reach_back(self, since_ms: int) -> None:
        """Note that others have told what was shown since an instant."""
        if self.since_ms is not None:
            self.since_ms = min(self.since_ms, since_ms)

    def unlearn(self, keys: Keys, *, party: int, since_ms: int) -> None:
        """Take back that `party` has shown these keys: they turned out to be somebody else's.

        What it had shown before `since_ms` stays.
        """
        for one in (self._new, self._old):
            tenants.unlearn(one.table.slots, one.shared, keys, party, since_ms // 1000)

    @property
    def tables(self) -> tuple[Marks, Marks, Marks, Marks]:
        """Both generations as kernels take them: rows and shared rows of each."""
        new, old = self._new, self._old
        return new.table.slots, new.shared, old.table.slots, old.shared

    def lookup(self, keys: Keys) -> Marks:
        """Return the marks of every key, shape (n, 8), packed as the kernel describes."""
        return tenants.lookup(*self.tables, keys)  # type: ignore[no-any-return]

    def private(self, keys: Keys, one: int, other: int) -> int:
        """Return how many of the keys nobody but two parties has shown."""
        return tenants.private(*self.tables, keys, one, other)  # type: ignore[no-any-return]

    def _make_room(self, keys: int, now_ms: int) -> None:
        if self._began_ms is None:
            self._began_ms = self.since_ms = now_ms
        age_ms = now_ms - self._began_ms
        if age_ms >= 2 * self._horizon_ms:
            self._new = _nothing()
            self._began_ms = now_ms
        elif age_ms < self._horizon_ms:
            if self._new.make_room(keys):
                return
            self.early_rotations += self._new.table.rows > 0
        self.since_ms, self._began_ms = self._began_ms, now_ms
        self._old = self._new
        # grown anew, not made as large as the last: no sequence then waits for memory all over it
        self._new = _Generation(self._most_bytes, max(keys, MAX_SEQUENCE_TOKENS))
        self._new.make_room(keys)


def _nothing() -> _Generation:
    """Return a generation that holds nothing and never will."""
    return _Generation(0, 1)


def mark_of(party: int, seen_ms: int) -> np.int64:
    """Return the mark of a party that has shown something at an instant of event time."""
    seconds = min(max(seen_ms // 1000 + tenants.TIME_OFFSET, 0), (1 << tenants.TIME_BITS) - 1)
    return np.int64((party + 1) << tenants.TIME_BITS | seconds)


def parties(marks: Marks) -> NDArray[np.int64]:
    """Return the party of every mark, -1 where there is none."""
    return (marks >> tenants.TIME_BITS) - 1
