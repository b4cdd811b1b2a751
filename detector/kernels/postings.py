"""Open-addressing table from shingle key to postings: probe and insert, sweep, grow (numba).

A row is three int64: key, first posting, last posting; a posting packs (sequence + 1) << 32 |
position, so an all-zero row is empty. There is one row per (key, owner), where an owner is a party
and a kind: `owners[sequence] = party * 2 + is_response`. A key's home row is its high 32 bits
scaled to `homes` rows, which lets the table grow by any factor and makes growth and sweep nearly
sequential; the rows behind `homes` are padding instead of a wraparound.
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

_LOW = np.int64(0xFFFFFFFF)


@njit(nogil=True, cache=True, inline="always")
def home_row(key, homes):  # type: ignore[no-untyped-def]
    """Return the first row to look at for a key."""
    return np.int64(((np.uint64(key) >> np.uint64(32)) * np.uint64(homes)) >> np.uint64(32))


@njit(nogil=True, cache=True, inline="always")
def _direction(other, current, owners, starts, ends, orders, window):  # type: ignore[no-untyped-def]
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
def probe_insert(slots, homes, keys, use, begin, current, expired, owners, starts, ends, orders, window, hits):  # type: ignore[no-untyped-def]
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
        key = keys[i]
        row = home_row(key, homes)
        own = -1
        free = -1
        others = 0
        while row < rows and slots[row, 2] != 0:
            last = slots[row, 2]
            if (last >> 32) <= expired:
                if free < 0:
                    free = row
            elif slots[row, 0] == key:
                other = (last >> 32) - 1
                if owners[other] == owner:
                    own = row
                elif owners[other] >> 1 != owner >> 1:
                    others += 1
                    if others <= HIT_CAP:
                        way = _direction(other, current, owners, starts, ends, orders, window)
                        if way:
                            hits[written, 0] = other
                            hits[written, 1] = last & _LOW
                            hits[written, 2] = (way << 32) | i
                            written += 1
                        first = slots[row, 1]
                        if expired < first >> 32 != last >> 32:
                            other = (first >> 32) - 1
                            way = _direction(other, current, owners, starts, ends, orders, window)
                            if way:
                                hits[written, 0] = other
                                hits[written, 1] = first & _LOW
                                hits[written, 2] = (way << 32) | i
                                written += 1
            row += 1
        posting = (np.int64(current + 1) << 32) | i
        if own >= 0:
            if slots[own, 2] >> 32 != posting >> 32:
                slots[own, 2] = posting
        elif others < OWNER_CAP and (free >= 0 or row < rows):
            added += free < 0
            if free >= 0:
                row = free
            slots[row, 0] = key
            slots[row, 1] = posting
            slots[row, 2] = posting
    return written, added, len(keys)


@njit(nogil=True, cache=True)
def owned(slots, homes, keys, owners, owner, starts, latest):  # type: ignore[no-untyped-def]
    """True for each key that `owner` has shown in a sequence that started by `latest`."""
    found = np.zeros(len(keys), np.bool_)
    for i in range(len(keys)):
        row = home_row(keys[i], homes)
        while row < slots.shape[0] and slots[row, 2] != 0:
            if slots[row, 0] == keys[i] and owners[(slots[row, 2] >> 32) - 1] == owner:
                found[i] = starts[(slots[row, 1] >> 32) - 1] <= latest
                break
            row += 1
    return found


@njit(nogil=True, cache=True)
def sweep(slots, homes, dropped):  # type: ignore[no-untyped-def]
    """Drop postings of sequences below `dropped`, renumber the rest, in place; return live rows.

    Each live row is taken out and put back at the first free row from its home. Rows before the
    one in hand are already final, so every probe path stays unbroken.
    """
    shift = np.int64(dropped) << 32
    live = 0
    for row in range(slots.shape[0]):
        last = slots[row, 2]
        if last == 0:
            continue
        key = slots[row, 0]
        first = slots[row, 1]
        slots[row, 2] = 0
        if (last >> 32) - 1 < dropped:
            continue
        if (first >> 32) - 1 < dropped:
            first = last
        target = home_row(key, homes)
        while slots[target, 2] != 0:
            target += 1
        slots[target, 0] = key
        slots[target, 1] = first - shift
        slots[target, 2] = last - shift
        live += 1
    return live


@njit(nogil=True, cache=True)
def live_rows(slots, expired):  # type: ignore[no-untyped-def]
    """Return how many rows hold a posting of a sequence that has not expired."""
    live = 0
    for row in range(slots.shape[0]):
        live += (slots[row, 2] >> 32) > expired
    return live


@njit(nogil=True, cache=True)
def rehash(old, slots, homes):  # type: ignore[no-untyped-def]
    """Copy every row of `old` into the empty table `slots`; return the rows that found no place."""
    lost = 0
    for row in range(old.shape[0]):
        if old[row, 2] == 0:
            continue
        target = home_row(old[row, 0], homes)
        while target < slots.shape[0] and slots[target, 2] != 0:
            target += 1
        if target < slots.shape[0]:
            slots[target] = old[row]
        else:
            lost += 1
    return lost
