"""Open-addressing table from shingle key to postings: probe and insert, sweep, grow (numba).

A row is 16 bytes, two int64: the key's high 46 bits with the position of the last posting, and the
sequences of both postings with the position of the first. An all-zero row is empty. There is one
row per (key, owner), where an owner is a party and a kind: `owners[sequence] = party * 2 +
is_response`. A key's home row is its high 32 bits scaled to `homes` rows, which lets the table grow
by any factor and makes growth and sweep nearly sequential; the rows behind `homes` are padding
instead of a wraparound. Half the rows stay empty: a miss then looks at 2.5 rows, in one or two
cache lines, where a table three quarters full looks at 8.5 (Knuth, linear probing).

46 bits identify a shingle among the live ones: with 10 million postings a probe meets a wrong one
once in 7 million, and every hit is checked on the tokens before it counts.
"""

import numpy as np
from numba import njit

from detector.kernels.prefetch import PREFETCH_AHEAD, prefetch_row

OWNER_CAP = 64
"""Owners kept per key: what so many parties say is common, and a longer chain would make the
table quadratic. A capped key never breaks a run: runs are extended on the tokens themselves."""

HIT_CAP = 16
"""Other owners reported per key and probe, twice at most each (first and last posting)."""

PADDING_ROWS = 8_192
"""Rows behind the last home; over 10x the longest cluster seen at the load limit."""

POSITION_BITS = 17
"""Token positions in a sequence part: 131,072."""

SEQUENCE_BITS = 23

MAX_SEQUENCES = (1 << SEQUENCE_BITS) - 2
"""Live sequences that rows can name: 8.4 million, 8,700 a second for a whole window."""

_POSITION = np.int64((1 << POSITION_BITS) - 1)
_SEQUENCE = np.int64((1 << SEQUENCE_BITS) - 1)
_FIRST_AT = np.int64(SEQUENCE_BITS)
_FIRST = np.int64(SEQUENCE_BITS + POSITION_BITS)
_TAG_SHIFT = np.int64(64 - 46)


@njit(nogil=True, cache=True, inline="always")
def home_row(key, homes):
    """Return the first row to look at for a key."""
    return np.int64(((np.uint64(key) >> np.uint64(32)) * np.uint64(homes)) >> np.uint64(32))


@njit(nogil=True, cache=True, inline="always")
def tag_of(key):
    """Return the part of a key, or of a row's first word, that tells shingles apart."""
    return key >> _TAG_SHIFT


@njit(nogil=True, cache=True, inline="always")
def last_of(word):
    """Return the sequence of the last posting, -1 for an empty row."""
    return (word & _SEQUENCE) - 1


@njit(nogil=True, cache=True, inline="always")
def first_of(word):
    """Return the sequence of the first posting."""
    return (word >> _FIRST) - 1


@njit(nogil=True, cache=True, inline="always")
def _direction(other, current, owners, starts, ends, orders, window):
    """Return 1 when `current` may have received from `other`, 2 for the reverse, 0 for neither.

    Between two responses the earlier-started one is the source; a prompt is never a sink.
    """
    other_answers = owners[other] & 1
    if owners[current] & 1:
        if not other_answers or orders[other] < orders[current]:
            fits = starts[other] < ends[current] and starts[current] - starts[other] <= window
            return 1 if fits else 0
    elif not other_answers:
        return 0
    fits = starts[current] < ends[other] and starts[other] - starts[current] <= window
    return 2 if fits else 0


@njit(nogil=True, cache=True)
def probe_insert(
    slots, homes, keys, use, begin, current, expired, owners, starts, ends, orders, window, hits
):
    """Look every used key up, report pairs that fit the window, and insert it.

    Sequences below `expired` have left the window: their rows match nothing and are used again.
    `hits` has shape (capacity, 3): other sequence, other position, direction << 32 | position.
    Returns (hits written, rows added, next key): next key < len(keys) when `hits` is full, and
    the caller goes on from there with an empty buffer.
    """
    rows = slots.shape[0]
    owner = owners[current]
    written = 0
    added = 0
    for i in range(begin, len(keys)):
        if i + PREFETCH_AHEAD < len(keys):
            prefetch_row(slots, home_row(keys[i + PREFETCH_AHEAD], homes))
        if not use[i]:
            continue
        if written + 2 * HIT_CAP > len(hits):
            return written, added, i
        tag = tag_of(keys[i])
        row = home_row(keys[i], homes)
        own = -1
        free = -1
        others = 0
        while row < rows and slots[row, 1] != 0:
            word = slots[row, 1]
            last = last_of(word)
            if last < expired:
                if free < 0:
                    free = row
            elif tag_of(slots[row, 0]) == tag:
                if owners[last] == owner:
                    own = row
                elif owners[last] >> 1 != owner >> 1:
                    others += 1
                    if others <= HIT_CAP:
                        way = _direction(last, current, owners, starts, ends, orders, window)
                        if way:
                            hits[written, 0] = last
                            hits[written, 1] = slots[row, 0] & _POSITION
                            hits[written, 2] = (way << 32) | i
                            written += 1
                        first = first_of(word)
                        if expired <= first != last:
                            way = _direction(first, current, owners, starts, ends, orders, window)
                            if way:
                                hits[written, 0] = first
                                hits[written, 1] = (word >> _FIRST_AT) & _POSITION
                                hits[written, 2] = (way << 32) | i
                                written += 1
            row += 1
        head = (tag << _TAG_SHIFT) | i
        if own >= 0:
            if last_of(slots[own, 1]) != current:
                slots[own, 0] = head
                slots[own, 1] = (slots[own, 1] & ~_SEQUENCE) | (current + 1)
        elif others < OWNER_CAP and (free >= 0 or row < rows):
            added += free < 0
            if free >= 0:
                row = free
            slots[row, 0] = head
            number = np.int64(current + 1)
            slots[row, 1] = (number << _FIRST) | (np.int64(i) << _FIRST_AT) | number
    return written, added, len(keys)


@njit(nogil=True, cache=True)
def sweep(slots, homes, dropped):
    """Drop postings of sequences below `dropped`, renumber the rest, in place; return live rows.

    Each live row is taken out and put back at the first free row from its home. Rows before the
    one in hand are already final, so every probe path stays unbroken.
    """
    live = 0
    for row in range(slots.shape[0]):
        word = slots[row, 1]
        if word == 0:
            continue
        head = slots[row, 0]
        slots[row, 1] = 0
        last = last_of(word) - dropped
        if last < 0:
            continue
        first = first_of(word) - dropped
        at = (word >> _FIRST_AT) & _POSITION
        if first < 0:
            first = last
            at = head & _POSITION
        target = home_row(head, homes)
        while slots[target, 1] != 0:
            target += 1
        slots[target, 0] = head
        slots[target, 1] = ((first + 1) << _FIRST) | (at << _FIRST_AT) | (last + 1)
        live += 1
    return live


@njit(nogil=True, cache=True)
def live_rows(slots, expired):
    """Return how many rows hold a posting of a sequence that has not expired."""
    live = 0
    for row in range(slots.shape[0]):
        live += last_of(slots[row, 1]) >= expired
    return live


@njit(nogil=True, cache=True)
def rehash(old, slots, homes):
    """Copy every row of `old` into the empty table `slots`; return the rows that found no place."""
    lost = 0
    for row in range(old.shape[0]):
        if old[row, 1] == 0:
            continue
        target = home_row(old[row, 0], homes)
        while target < slots.shape[0] and slots[target, 1] != 0:
            target += 1
        if target < slots.shape[0]:
            slots[target] = old[row]
        else:
            lost += 1
    return lost
