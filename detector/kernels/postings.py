"""Table from shingle key to postings: probe and insert, sweep (numba).

The key word holds the key's high 46 bits and the position of the last posting; the value word the
sequences of the first and the last posting and the position of the first. There is one row per
(key, owner), where an owner is a party and a kind: `owners[sequence] = party * 2 + is_response`.

46 bits identify a shingle among the live ones: with 10 million postings a probe meets a wrong one
once in 7 million, and every hit is checked on the tokens before it counts.
"""

import numpy as np

from detector.kernels.buckets import STEP, USED, home, place
from detector.kernels.cache import njit
from detector.kernels.line import KEYS, VALUES, look, lowest
from detector.kernels.seek import BLOCK, NOWHERE, room, seek

OWNER_CAP = 16
"""Owners kept per key: what so many parties say is common, and a longer chain would make the
table quadratic. A capped key never breaks a run: runs are extended on the tokens themselves."""

HIT_CAP = 8
"""Other owners reported per key and probe, twice at most each (first and last posting)."""

POSITION_BITS = 17
"""Token positions in a sequence part: 131,072."""

SEQUENCE_BITS = 23

MAX_SEQUENCES = (1 << SEQUENCE_BITS) - 2
"""Live sequences that rows can name: 8.4 million, 8,700 a second for a whole window."""

_POSITION = np.int64((1 << POSITION_BITS) - 1)
SEQUENCE_MASK = (1 << SEQUENCE_BITS) - 1
"""Bits of a value word: the last sequence, 0 in an empty row."""

_SEQUENCE = np.int64(SEQUENCE_MASK)
_FIRST_AT = np.int64(SEQUENCE_BITS)
_FIRST = np.int64(SEQUENCE_BITS + POSITION_BITS)
_TAG = np.int64(-1 << 18)
_KEYS = np.uint64(KEYS)
_VALUES = np.uint64(VALUES)
_ONE = np.uint64(1)
_TWO = np.uint64(2)
_SECOND = np.uint64(8)


@njit(nogil=True, cache=True, inline="always")
def last_of(word):
    """Return the sequence of the last posting, -1 for an empty row."""
    return (word & _SEQUENCE) - 1


@njit(nogil=True, cache=True, inline="always")
def first_of(word):
    """Return the sequence of the first posting."""
    return (word >> _FIRST) - 1


@njit(nogil=True, cache=True)
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
def _report(table, row, at, current, expired, owners, starts, ends, orders, window, hits, written):
    """Write the hits of another owner's row: its last posting and, if it differs, its first."""
    word = table[row + _ONE]
    last = last_of(word)
    way = _direction(last, current, owners, starts, ends, orders, window)
    if way:
        hits[written, 0] = last
        hits[written, 1] = table[row] & _POSITION
        hits[written, 2] = (way << 32) | at
        written += 1
    first = first_of(word)
    if expired <= first != last:
        way = _direction(first, current, owners, starts, ends, orders, window)
        if way:
            hits[written, 0] = first
            hits[written, 1] = (word >> _FIRST_AT) & _POSITION
            hits[written, 2] = (way << 32) | at
            written += 1
    return written


@njit(nogil=True, cache=True)
def probe_insert(
    table, keys, positions, begin, current, expired, owners, starts, ends, orders, window, hits
):
    """Look every key up, report pairs that fit the window, and insert it with its position.

    Sequences below `expired` have left the window: their rows match nothing and are used again.
    `hits` has shape (capacity, 3): other sequence, other position, direction << 32 | position.
    Returns (hits written, next key): next key < len(keys) when `hits` is full, and
    the caller goes on from there with an empty buffer.
    """
    mask = (_TAG, _SEQUENCE)
    found = room()
    use = np.ones(len(keys), np.bool_)
    number = np.int64(current + 1)
    fresh = (number << _FIRST) | number
    written = 0
    added = 0
    for first in range(begin, len(keys), BLOCK):
        end = min(first + BLOCK, len(keys))
        seek(table, keys, use, first, end, mask, expired, found)
        for i in range(first, end):
            row = found[0, i - first]
            word = table[row + _ONE]
            at = np.int64(positions[i])
            if (row != NOWHERE) & ((word & _SEQUENCE) <= expired):
                added += word == 0
                table[row] = (keys[i] & _TAG) | at
                table[row + _ONE] = fresh | (at << _FIRST_AT)
            else:
                if written + 2 * HIT_CAP > len(hits):
                    table[USED] += added
                    return written, i
                written, more = _meet(
                    table, keys[i], at, current, expired,
                    owners, starts, ends, orders, window, hits, written,
                )  # fmt: skip
                added += more
    table[USED] += added
    return written, len(keys)


@njit(nogil=True, cache=True)
def _rows_of(table, bucket, tag, expired):
    """Look for a key in a bucket; return (same, dead, empty), sets of the bucket's words.

    `same` are the key words of its rows in live sequences, `dead` the value words of the rows that
    may be written, `empty` those of rows never used: the way of a key ends where there is one.
    """
    seen = look(table, bucket, (_TAG, _SEQUENCE), tag, expired)
    dead = (seen >> _SECOND) & _VALUES
    return seen & _KEYS & ~(dead >> _ONE), dead, seen & _VALUES


@njit(nogil=True, cache=True)
def _meet(
    table, key, at, current, expired, owners, starts, ends, orders, window, hits, written
):  # fmt: skip
    """Look up and insert a key of which there may be a row; return (hits written, rows added)."""
    size = np.uint64(len(table))
    owner = owners[current]
    tag = key & _TAG
    bucket = home(key, table)
    own = size
    free = size
    others = 0
    while bucket < size:
        same, dead, empty = _rows_of(table, bucket, tag, expired)
        if dead and free == size:
            free = bucket + lowest(dead) - _ONE
        while same:
            row = bucket + lowest(same)
            same &= same - _ONE
            other = owners[last_of(table[row + _ONE])]
            if other == owner:
                own = row
            elif other >> 1 != owner >> 1:
                others += 1
                if others <= HIT_CAP:
                    written = _report(
                        table, row, at, current, expired,
                        owners, starts, ends, orders, window, hits, written,
                    )  # fmt: skip
        if empty:
            break
        bucket += STEP
    if own < size:
        _repeat(table, own, tag | at, current, expired)
    elif others < OWNER_CAP and free < size:
        added = table[free + _ONE] == 0
        number = np.int64(current + 1)
        table[free] = tag | at
        table[free + _ONE] = (number << _FIRST) | (at << _FIRST_AT) | number
        return written, np.int64(added)
    return written, np.int64(0)


@njit(nogil=True, cache=True)
def _repeat(table, row, head, current, expired):
    """Make the posting of the key word `head` the last one of an owner's row."""
    word = table[row + _ONE]
    if last_of(word) != current:
        if first_of(word) < expired:  # what was the last is the first that is left
            at = table[row] & _POSITION
            word = ((word & _SEQUENCE) << _FIRST) | (at << _FIRST_AT)
        table[row] = head
        table[row + _ONE] = (word & ~_SEQUENCE) | (current + 1)


@njit(nogil=True, cache=True)
def in_sequence_of(table, expired, key, owners, owner, starts, latest):
    """Tell whether `owner` has shown the key in a live sequence that started by `latest`."""
    bucket = home(key, table)
    while bucket < np.uint64(len(table)):
        same, _, empty = _rows_of(table, bucket, key & _TAG, expired)
        while same:
            word = table[bucket + lowest(same) + _ONE]
            same &= same - _ONE
            last = last_of(word)
            if owners[last] == owner:
                first = first_of(word)
                return starts[first if first >= expired else last] <= latest
        if empty:
            break
        bucket += STEP
    return False


@njit(nogil=True, cache=True)
def sweep(table, begin, buckets, expired):
    """Empty the rows of expired sequences in some buckets; return where to go on.

    Goes on past `buckets` to the next bucket that had an empty row, and to 0 after the last one:
    no key lies behind such a bucket for want of room, so no probe path is broken in between. Only
    rows behind a bucket that was full are put back at the first empty row from home, and which
    rows are dead decides no branch (measured: 10 us for 500 buckets, of which 7 are the memory's,
    against 20 where every row of a bucket with a dead one was put back).
    """
    emptied = 0
    pulling = False
    size = np.uint64(len(table))
    bucket = max(np.uint64(begin), STEP)
    last = bucket + np.uint64(buckets) * STEP
    while bucket < size:
        had_empty = False
        dead = 0
        for value in range(bucket + _ONE, bucket + STEP, _TWO):
            word = table[value]
            is_live = (word & _SEQUENCE) > expired
            had_empty |= word == 0
            dead += (word != 0) & (not is_live)
            table[value] = word if is_live else 0
        emptied += dead
        if pulling:
            _pull(table, bucket)
        pulling = (pulling | (dead > 0)) & (not had_empty)
        bucket += STEP
        if bucket >= last and had_empty:
            break
    table[USED] -= emptied
    return bucket if bucket < size else np.uint64(0)


@njit(nogil=True, cache=True)
def _pull(table, bucket):
    """Put the rows of a bucket that lie away from home back at the first empty row from there."""
    for row in range(bucket, bucket + STEP, _TWO):
        head, word = table[row], table[row + _ONE]
        if (word != 0) & (home(head, table) != bucket):
            table[row + _ONE] = 0
            target = place(table, head)
            table[target] = head
            table[target + _ONE] = word


@njit(nogil=True, cache=True)
def renumber(table, dropped):
    """Subtract `dropped` from every sequence; rows of sequences below it must be swept already."""
    for row in range(STEP, np.uint64(len(table)), _TWO):
        word = table[row + _ONE]
        if word == 0:
            continue
        last = last_of(word) - dropped
        first = first_of(word) - dropped
        at = (word >> _FIRST_AT) & _POSITION
        if first < 0:
            first = last
            at = table[row] & _POSITION
        table[row + _ONE] = ((first + 1) << _FIRST) | (at << _FIRST_AT) | (last + 1)


@njit(nogil=True, cache=True)
def live_rows(table, expired):
    """Return how many rows hold a posting of a sequence that has not expired."""
    live = 0
    for row in range(STEP, np.uint64(len(table)), _TWO):
        live += last_of(table[row + _ONE]) >= expired
    return live


@njit(nogil=True, cache=True)
def showings(table, expired, keys, owners, party):
    """Return (first, last) sequence in which a party has shown one of the keys, or (-1, -1)."""
    earliest = -1
    latest = -1
    for key in keys:
        bucket = home(key, table)
        while bucket < np.uint64(len(table)):
            same, _, empty = _rows_of(table, bucket, key & _TAG, expired)
            while same:
                word = table[bucket + lowest(same) + _ONE]
                same &= same - _ONE
                last = last_of(word)
                if owners[last] >> 1 == party:
                    first = max(first_of(word), expired)
                    earliest = first if earliest < 0 else min(earliest, first)
                    latest = max(latest, last)
            if empty:
                break
            bucket += STEP
    return earliest, latest
