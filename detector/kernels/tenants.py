"""Table from shingle key to the parties that have shown it, and when first (numba).

A row of `slots` is two int64: key and word. A positive word is one mark; a negative word -n points
at row n - 1 of `shared`, up to four marks of a key that a second party has shown; 0 is empty.
A mark packs (party + 1) << 33 | (first seen in seconds + 2^32).
"""

import numpy as np
from numba import njit

from detector.kernels.postings import home_row
from detector.kernels.prefetch import PREFETCH_AHEAD, prefetch_row

MARKS = 4
"""Parties kept per key (DESIGN 6.5): three besides the receiver already prove it common."""

TIME_BITS = 33
TIME_OFFSET = 1 << 32
"""Seconds are stored with an offset so that times before the epoch stay positive."""

NOBODY = 0
"""The party of a mark that was taken back: its row stays, it proves nothing. Real ones start at 1."""

TIME_MASK = np.int64((1 << TIME_BITS) - 1)


@njit(nogil=True, cache=True, inline="always")
def _find(slots, homes, key):
    """Return the row of the key, or -1 - row of the empty row where it belongs."""
    row = home_row(key, homes)
    while row < slots.shape[0] and slots[row, 1] != 0:
        if slots[row, 0] == key:
            return row
        row += 1
    return -1 - row


@njit(nogil=True, cache=True)
def _add_mark(marks, mark):
    """Add a party's mark, or move its first time back; a fifth party is not kept."""
    for i in range(MARKS):
        if marks[i] == 0 or marks[i] >> TIME_BITS == NOBODY + 1:
            marks[i] = mark
            return
        if marks[i] >> TIME_BITS == mark >> TIME_BITS:
            marks[i] = min(marks[i], mark)
            return


@njit(nogil=True, cache=True)
def learn(slots, homes, shared, counts, old_slots, old_homes, old_shared, keys, use, begin, mark):
    """Record that the mark's party has shown the used keys; return the next key to go on from.

    `counts` holds (rows used, shared rows used) and is updated. A key found only in the older
    generation is carried over with its marks. Stops early when `shared` is full.
    """
    for i in range(begin, len(keys)):
        if i + PREFETCH_AHEAD < len(keys):
            ahead = keys[i + PREFETCH_AHEAD]
            prefetch_row(slots, home_row(ahead, homes))
            if old_homes:
                prefetch_row(old_slots, home_row(ahead, old_homes))
        if not use[i]:
            continue
        if counts[1] >= shared.shape[0]:
            return i
        key = keys[i]
        row = _find(slots, homes, key)
        if row < 0:
            row = -1 - row
            if row >= slots.shape[0]:
                continue
            slots[row, 0] = key
            slots[row, 1] = mark
            counts[0] += 1
            if old_homes:
                old_row = _find(old_slots, old_homes, key)
                if old_row >= 0:
                    word = old_slots[old_row, 1]
                    if word > 0:
                        slots[row, 1] = word
                    else:
                        shared[counts[1]] = old_shared[-1 - word]
                        counts[1] += 1
                        slots[row, 1] = -counts[1]
                        _add_mark(shared[counts[1] - 1], mark)
                        continue
        word = slots[row, 1]
        if word < 0:
            _add_mark(shared[-1 - word], mark)
        elif word >> TIME_BITS == mark >> TIME_BITS:
            slots[row, 1] = min(word, mark)
        elif word >> TIME_BITS == NOBODY + 1:
            slots[row, 1] = mark
        else:
            if counts[1] >= shared.shape[0]:
                return i
            shared[counts[1], 0] = word
            shared[counts[1], 1] = mark
            counts[1] += 1
            slots[row, 1] = -counts[1]
    return len(keys)


@njit(nogil=True, cache=True)
def unlearn(slots, homes, shared, keys, party, since_s):
    """Take back what a party has shown since an instant: its marks become NOBODY's."""
    for i in range(len(keys)):
        row = _find(slots, homes, keys[i])
        if row < 0:
            continue
        word = slots[row, 1]
        if word > 0:
            if (word >> TIME_BITS) - 1 == party and (word & TIME_MASK) - TIME_OFFSET >= since_s:
                slots[row, 1] = (np.int64(NOBODY + 1) << TIME_BITS) | (word & TIME_MASK)
            continue
        for j in range(MARKS):
            mark = shared[-1 - word, j]
            late = (mark & TIME_MASK) - TIME_OFFSET >= since_s
            if late and (mark >> TIME_BITS) - 1 == party:
                shared[-1 - word, j] = (np.int64(NOBODY + 1) << TIME_BITS) | (mark & TIME_MASK)


@njit(nogil=True, cache=True)
def marks_of(slots, homes, shared, old_slots, old_homes, old_shared, key, marks):
    """Write the marks of one key, 0 where there is none."""
    marks[:] = 0
    row = _find(slots, homes, key)
    if row >= 0:
        word = slots[row, 1]
        if word > 0:
            marks[0] = word
        else:
            marks[:] = shared[-1 - word]
    elif old_homes:
        row = _find(old_slots, old_homes, key)
        if row >= 0:
            word = old_slots[row, 1]
            if word > 0:
                marks[0] = word
            else:
                marks[:] = old_shared[-1 - word]


@njit(nogil=True, cache=True)
def lookup(slots, homes, shared, old_slots, old_homes, old_shared, keys):
    """Return the marks of every key, shape (len(keys), 4); 0 where there is none."""
    marks = np.zeros((len(keys), MARKS), np.int64)
    for i in range(len(keys)):
        marks_of(slots, homes, shared, old_slots, old_homes, old_shared, keys[i], marks[i])
    return marks


@njit(nogil=True, cache=True)
def contains(slots, homes, old_slots, old_homes, keys):
    """True for every key that some party has shown, shape (len(keys),)."""
    found = np.zeros(len(keys), np.bool_)
    for i in range(len(keys)):
        found[i] = _find(slots, homes, keys[i]) >= 0 or (
            old_homes > 0 and _find(old_slots, old_homes, keys[i]) >= 0
        )
    return found


@njit(nogil=True, cache=True)
def rehash(old, slots, homes):
    """Copy every row of `old` into the empty and larger table `slots`."""
    for row in range(old.shape[0]):
        if old[row, 1] != 0:
            target = -1 - _find(slots, homes, old[row, 0])
            if target < slots.shape[0]:
                slots[target] = old[row]
