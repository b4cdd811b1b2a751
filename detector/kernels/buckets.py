"""Hash tables of 64-byte buckets: what the tables of postings and of tenants share (numba).

A table is one int64 array; a bucket is one cache line of four rows of two words, key word and value
word. A row is empty when its value word is 0. A key's home bucket is its high 32 bits, stirred and
scaled to the number of homes, so a table grows by any factor, and growth and sweep go in order.
Unstirred, the smallest keys, which winnowing picks, would fill one part of the table.
A key lies in its home bucket or, where that is full, in the next one that is not; the buckets
behind the last home are padding instead of a wraparound. The first line is the header.

Looking at a whole line at once needs no branch per row: rows probed one by one cost twice as much
here, nearly all of it mispredicted branches (measured: 60 against 30 ns with the table in cache).

A table grows in place, from its last bucket to its first, a few buckets at a time: keys whose
stirred bits have reached the header's border are at home in the wider table, those below it in the
narrower one. A key's home only ever moves up and homes stay in the order of the stirred keys, so
probing needs to know nothing else, and no step touches more than the rows it moves.
"""

import numpy as np

from detector.kernels.cache import njit
from detector.kernels.line import VALUES, WHOLE, look, lowest
from detector.kernels.prefetch import prefetch

ROWS = 4
"""Rows of two int64 in a cache line of 64 bytes."""

STEP = np.uint64(2 * ROWS)
"""Words in a bucket."""

PADDING = 1_024
"""Buckets behind the last home; far more than the longest overflow seen at the load limits."""

BUCKET_BYTES = 64

HOMES = 0
"""Word of the header: homes of the keys below the border."""

WIDER = 1
"""Word of the header: homes of the keys from the border on."""

BORDER = 2
"""Word of the header: the first stirred half in the wider table, 0 when all are there."""

USED = 3
"""Word of the header: rows that are not empty."""

OWN = 4
"""Word of the header that is free for the table's owner."""

CHUNK = 16
"""Buckets that move at once."""

_VALUES = np.uint64(VALUES)
_HALF = np.uint64(32)
_ONE = np.uint64(1)
_TWO = np.uint64(2)

_STIR = np.uint64(0x9E3779B1)
"""Odd, so it loses nothing; 2^32 divided by the golden ratio spreads any dense range evenly."""

_LOW = np.uint64(0xFFFFFFFF)


@njit(nogil=True, cache=True, inline="always")
def home(key, table):
    """Return the index of the first word of the key's home bucket."""
    return home_of(key, np.uint64(table[HOMES]), np.uint64(table[WIDER]), np.uint64(table[BORDER]))


@njit(nogil=True, cache=True, inline="always")
def home_of(key, homes, wider, border):
    """Return that index for words of the header that were read before.

    Who asks for many keys and writes in between spares two reads for each.
    """
    stirred = ((np.uint64(key) >> _HALF) * _STIR) & _LOW
    return ((stirred * (wider if stirred >= border else homes)) >> _HALF) * STEP + STEP


@njit(nogil=True, cache=True)
def place(table, head):
    """Return the first empty row from a key's home, len(table) when there is none."""
    bucket = home(head, table)
    while bucket < np.uint64(len(table)):
        empty = look(table, bucket, WHOLE, 0, 0) & _VALUES
        if empty:
            return bucket + lowest(empty) - _ONE
        bucket += STEP
    return bucket


@njit(nogil=True, cache=True)
def _has_empty(table, bucket):
    """Tell whether a bucket, given by its first word, has an empty row."""
    return look(table, bucket, WHOLE, 0, 0) & _VALUES != 0


@njit(nogil=True, cache=True)
def grow(table, buckets, mask, gone):
    """Move the rows of at least that many buckets to their wider homes; return buckets moved.

    Rows whose value word has (word & mask) <= gone are dropped; a mask of 0 and a negative `gone`
    keep all. A chunk begins behind a bucket with an empty row and ends at one, so no key outside
    of it has passed over it.
    """
    moved = np.int64(0)
    while moved < buckets and table[BORDER] > 0:
        homes = table[HOMES]
        top = np.uint64((((table[BORDER] - 1) * homes) >> 32) + 1) * STEP
        first = max(top, np.uint64(CHUNK) * STEP) - np.uint64(CHUNK - 1) * STEP
        while first > STEP and not _has_empty(table, first - STEP):
            first -= STEP
        end = top
        while end + STEP < np.uint64(len(table)) and not _has_empty(table, end):
            end += STEP
        below = np.int64(first // STEP) - 1
        _fetch(table, below - CHUNK, below)
        wider = (below << 32) // homes * table[WIDER] >> 32
        _fetch(table, wider - 2 * CHUNK, wider)
        table[BORDER] = ((below << 32) + homes - 1) // homes
        _move(table, first, end + STEP, mask, gone)
        moved += np.int64((end - first) // STEP) + 1
    if table[BORDER] == 0:
        table[HOMES] = table[WIDER]
    return moved


@njit(nogil=True, cache=True)
def _fetch(table, begin, end):
    """Fetch the lines of some homes, which are next: downwards nothing else would fetch them."""
    for bucket in range(max(begin, 0), end):
        prefetch(table, np.uint64(bucket + 1) * STEP)  # type: ignore[call-arg]


@njit(nogil=True, cache=True)
def _move(table, begin, end, mask, gone):
    """Take out the rows of the words [begin, end) and put those that are not gone back."""
    held = np.empty(np.int64(end - begin) + 2, np.int64)
    kept = 0
    used = 0
    for row in range(begin, end, _TWO):
        word = table[row + _ONE]
        held[kept] = table[row]
        held[kept + 1] = word
        used += word != 0
        kept += 2 if (word != 0) & (word & mask > gone) else 0
        table[row + _ONE] = 0
    put = 0
    for i in range(0, kept, 2):
        row = place(table, held[i])
        if row < np.uint64(len(table)):
            table[row] = held[i]
            table[row + _ONE] = held[i + 1]
            put += 1
    table[USED] -= used - put


def words(homes: int) -> int:
    """Return the words of a table with that many homes."""
    return (1 + homes + PADDING) * int(STEP)
