"""Table from shingle key to the parties that have shown it, and when first (numba).

A positive value word is one mark; a negative one, -n, points at row n - 1 of `shared`: up to four
marks of a key that a second party has shown; the header's own word counts them. A mark packs
(party + 1) << 33 | (first seen in seconds + 2^32).
"""

import numpy as np

from detector.kernels.buckets import OWN, STEP, USED, home
from detector.kernels.cache import njit
from detector.kernels.line import KEYS, VALUES, WHOLE, look, lowest
from detector.kernels.seek import BLOCK, NOWHERE, room, seek, touch

MARKS = 4
"""Parties kept per key: three besides the receiver already prove it common."""

COMMON_PARTIES = 3
"""Parties that make a key common for every pair of source and receiver."""

TIME_BITS = 33
TIME_OFFSET = 1 << 32
"""Seconds are stored with an offset so that times before the epoch stay positive."""

FILTER_BITS = 16
"""A filter of 64 KiB stays in the cache: most keys were never seen and cost one look at it."""

NOBODY = 0
"""The party of a mark that was taken back: it proves nothing. Real parties start at 1."""

TIME_MASK = np.int64((1 << TIME_BITS) - 1)
_KEYS = np.uint64(KEYS)
_VALUES = np.uint64(VALUES)
_ONE = np.uint64(1)


@njit(nogil=True, cache=True)
def find(table, key):
    """Return (row of the key or of the first empty place for it, whether the key is there)."""
    size = np.uint64(len(table))
    bucket = home(key, table)
    while bucket < size:
        seen = look(table, bucket, WHOLE, key, 0)
        empty = seen & _VALUES
        same = seen & _KEYS & ~(empty >> _ONE)
        if same:
            return bucket + lowest(same), True
        if empty:
            return bucket + lowest(empty) - _ONE, False
        bucket += STEP
    return size, False


@njit(nogil=True, cache=True)
def _add_mark(marks, mark):
    """Add a party's mark, or move its first time back; True if the party is new and kept.

    A fifth party is not kept.
    """
    free = -1
    for i in range(MARKS):
        if marks[i] >> TIME_BITS == mark >> TIME_BITS:
            marks[i] = min(marks[i], mark)
            return False
        if free < 0 and (marks[i] == 0 or marks[i] >> TIME_BITS == NOBODY + 1):
            free = i
    if free >= 0:
        marks[free] = mark
    return free >= 0


@njit(nogil=True, cache=True)
def put_mark(slots, shared, row, known, key, mark):
    """Enter a mark into the row that `find` returned for a key; True if its party is new there."""
    if not known:
        slots[row] = key
        slots[row + _ONE] = mark
        slots[USED] += 1
        return True
    word = slots[row + _ONE]
    if word < 0:
        return _add_mark(shared[-1 - word], mark)
    if word >> TIME_BITS == mark >> TIME_BITS:
        slots[row + _ONE] = min(word, mark)
        return False
    _share(slots, shared, row, word, mark)
    return True


@njit(nogil=True, cache=True)
def _share(slots, shared, row, word, mark):
    """Enter a second party's mark beside the first one's, or in the place of nobody's."""
    if word >> TIME_BITS == NOBODY + 1:
        slots[row + _ONE] = mark
    else:
        shared[slots[OWN], 0] = word
        shared[slots[OWN], 1] = mark
        slots[OWN] += 1
        slots[row + _ONE] = -slots[OWN]


@njit(nogil=True, cache=True)
def learn(slots, shared, keys, use, rare, first, mark):
    """Record that the mark's party has shown the used keys, and clear `rare` where all show them.

    That is where three parties have shown the key by now: whoever source and receiver are, a third
    party has shown it, so it is common for all pairs. `first` is set where the newer generation
    did not know that the party has. Both tables must have room for all keys.

    What is known comes last, all at once: then the shared rows are brought all at once as well.
    """
    found = room()
    known = np.empty(len(keys), np.int64)
    rows = np.empty(len(keys), np.uint64)
    heads = np.empty(len(keys), np.int64)
    count = 0
    asked = 0
    added = 0
    for begin in range(0, len(keys), BLOCK):
        end = min(begin + BLOCK, len(keys))
        seek(slots, keys, use, begin, end, WHOLE, 0, found)
        for i in range(begin, end):
            row = found[0, i - begin]
            is_new = (row != NOWHERE) & (slots[row + _ONE] == 0)
            if (not is_new) & use[i]:
                row, is_known = find(slots, keys[i])
                if is_known:
                    known[count] = i
                    rows[count] = row
                    count += 1
                    heads[asked] = (-1 - slots[row + _ONE]) * MARKS
                    asked += slots[row + _ONE] < 0
                is_new = (not is_known) & (row < np.uint64(len(slots)))
            if is_new:
                slots[row] = keys[i]
                slots[row + _ONE] = mark
                first[i] = True
                added += 1
    slots[USED] += added
    found[3, 0] = touch(shared.reshape(-1), heads[:asked])
    for n in range(count):
        _learn_known(slots, shared, rows[n], rare, first, known[n], mark)


@njit(nogil=True, cache=True)
def _learn_known(slots, shared, row, rare, first, i, mark):
    """Learn the i-th key, of which there is a row."""
    word = slots[row + _ONE]
    if word < 0:
        marks = shared[-1 - word]
        first[i] = _add_mark(marks, mark)
        if rare[i] and _real(marks) >= COMMON_PARTIES:
            rare[i] = False
    elif word >> TIME_BITS == mark >> TIME_BITS:
        slots[row + _ONE] = min(word, mark)
    else:
        first[i] = True
        _share(slots, shared, row, word, mark)


@njit(nogil=True, cache=True)
def _real(marks):
    """Count the marks of real parties."""
    parties = 0
    for i in range(MARKS):
        parties += marks[i] >> TIME_BITS > NOBODY + 1
    return parties


@njit(nogil=True, cache=True)
def unlearn(slots, shared, keys, party, since_s):
    """Take back what a party has shown since an instant: its marks become NOBODY's."""
    for i in range(len(keys)):
        row, known = find(slots, keys[i])
        if not known:
            continue
        word = slots[row + _ONE]
        if word > 0:
            if (word >> TIME_BITS) - 1 == party and (word & TIME_MASK) - TIME_OFFSET >= since_s:
                slots[row + _ONE] = (np.int64(NOBODY + 1) << TIME_BITS) | (word & TIME_MASK)
            continue
        for j in range(MARKS):
            mark = shared[-1 - word, j]
            late = (mark & TIME_MASK) - TIME_OFFSET >= since_s
            if late and (mark >> TIME_BITS) - 1 == party:
                shared[-1 - word, j] = (np.int64(NOBODY + 1) << TIME_BITS) | (mark & TIME_MASK)


@njit(nogil=True, cache=True)
def marks_of(slots, shared, old_slots, old_shared, key, marks):
    """Write the marks of one key, those of the older generation last; 0 where there is none."""
    marks[:] = 0
    write_marks(slots, shared, key, marks[:MARKS])
    write_marks(old_slots, old_shared, key, marks[MARKS:])


@njit(nogil=True, cache=True)
def write_marks(slots, shared, key, marks):
    """Write the marks of one key in one generation; `marks` stays as it is without any."""
    row, known = find(slots, key)
    if known:
        word = slots[row + _ONE]
        if word > 0:
            marks[0] = word
        else:
            marks[:] = shared[-1 - word]


@njit(nogil=True, cache=True)
def lookup(slots, shared, old_slots, old_shared, keys):
    """Return the marks of every key, shape (len(keys), 8); 0 where there is none."""
    marks = np.zeros((len(keys), 2 * MARKS), np.int64)
    for i in range(len(keys)):
        marks_of(slots, shared, old_slots, old_shared, keys[i], marks[i])
    return marks


@njit(nogil=True, cache=True)
def last_party(slots, shared, old_slots, old_shared, keys):
    """Return the party with the highest number that has shown each key, -1 where none has."""
    marks = np.empty(2 * MARKS, np.int64)
    found = np.empty(len(keys), np.int64)
    for i in range(len(keys)):
        marks_of(slots, shared, old_slots, old_shared, keys[i], marks)
        found[i] = (marks.max() >> TIME_BITS) - 1
    return found


@njit(nogil=True, cache=True)
def private(slots, shared, old_slots, old_shared, keys, one, other):
    """Count the keys that nobody but two parties has shown."""
    marks = np.empty(2 * MARKS, np.int64)
    count = 0
    for key in keys:
        marks_of(slots, shared, old_slots, old_shared, key, marks)
        count += 1
        for mark in marks:
            party = (mark >> TIME_BITS) - 1
            if (party > NOBODY) & (party != one) & (party != other):
                count -= 1
                break
    return count


@njit(nogil=True, cache=True, inline="always")
def filter_bit(key):
    """Return the place of a key in the filter that `contains` asks first."""
    return np.uint64(key) >> np.uint64(64 - FILTER_BITS)


@njit(nogil=True, cache=True)
def remember(maybe, keys, use):
    """Enter the used keys into the filter."""
    for i in range(len(keys)):
        if use[i]:
            maybe[filter_bit(keys[i])] = True


@njit(nogil=True, cache=True)
def contains(maybe, slots, old_slots, keys):
    """True for every key that some party has shown, shape (len(keys),)."""
    found = np.zeros(len(keys), np.bool_)
    asked = np.empty(len(keys), np.int64)
    count = 0
    for i in range(len(keys)):  # without a branch: which ones are asked is not predictable
        asked[count] = i
        count += maybe[filter_bit(keys[i])]
    for i in asked[:count]:
        found[i] = find(slots, keys[i])[1] or find(old_slots, keys[i])[1]
    return found
