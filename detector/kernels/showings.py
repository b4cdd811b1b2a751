"""Showings of many parties in one pass: merged into a table, or told on where they are shared."""

import numpy as np

from detector.kernels.cache import njit
from detector.kernels.seek import BLOCK, bring
from detector.kernels.tenants import (
    MARKS,
    NOBODY,
    TIME_BITS,
    TIME_MASK,
    find,
    put_mark,
    write_marks,
)

MOST_TOLD = MARKS + 1
"""Marks told on for one showing at most: its own and those of the others."""

_ONE = np.uint64(1)


@njit(nogil=True, cache=True)
def merge(slots, shared, tags, use, marks):
    """Record every used tag with its own mark; both tables must have room for all tags."""
    buckets = np.empty(BLOCK, np.uint64)
    for i in range(len(tags)):
        if i % BLOCK == 0:
            bring(slots, tags[i : i + BLOCK], buckets)
        if not use[i]:
            continue
        row, known = find(slots, tags[i])
        if row < np.uint64(len(slots)):
            put_mark(slots, shared, row, known, tags[i], marks[i])


@njit(nogil=True, cache=True)
def tell(
    slots, shared, old_slots, old_shared,
    tags, use, marks, refresh_s, told_tags, told_marks,
):  # fmt: skip
    """Record showings in the table of their range, and write those that others must hear of.

    A mark in this table holds when its party was last heard of. A tag that a second party shows is
    told with the marks of both; afterwards each new party is, and a party again that is heard of
    `refresh_s` or more from the last time. Both tables must have room for all tags, the arrays of
    what is told for MOST_TOLD entries a tag. Returns how many were written.
    """
    now = np.zeros(MARKS, np.int64)
    before = np.zeros(MARKS, np.int64)
    buckets = np.empty(BLOCK, np.uint64)
    written = 0
    for i in range(len(tags)):
        if i % BLOCK == 0:
            bring(slots, tags[i : i + BLOCK], buckets)
            bring(old_slots, tags[i : i + BLOCK], buckets)
        if not use[i]:
            continue
        now[:] = 0
        before[:] = 0
        write_marks(old_slots, old_shared, tags[i], before)
        row, known = find(slots, tags[i])
        if row >= np.uint64(len(slots)):
            continue
        if known:
            write_marks(slots, shared, tags[i], now)
        others = _others(now, marks[i])
        last = _own(now, marks[i])
        if last:
            if abs((marks[i] & TIME_MASK) - (last & TIME_MASK)) < refresh_s:
                continue
            _move_on(slots, shared, row, marks[i])
            if others == 0 and _others(before, marks[i]) == 0:
                continue
        else:
            if not put_mark(slots, shared, row, known, tags[i], marks[i]):
                continue
            heard = now if others else before
            if _others(heard, marks[i]) == 0:
                continue
            if others < 2:
                written = _tell_others(heard, tags[i], marks[i], told_tags, told_marks, written)
        told_tags[written] = tags[i]
        told_marks[written] = marks[i]
        written += 1
    return written


@njit(nogil=True, cache=True)
def _own(marks, mark):
    """Return the mark of the same party, 0 if there is none."""
    for i in range(MARKS):
        if marks[i] >> TIME_BITS == mark >> TIME_BITS:
            return marks[i]
    return np.int64(0)


@njit(nogil=True, cache=True)
def _is_other(one, mark):
    """True for the mark of a real party that is not the one of `mark`."""
    return one >> TIME_BITS > NOBODY + 1 and one >> TIME_BITS != mark >> TIME_BITS


@njit(nogil=True, cache=True)
def _others(marks, mark):
    """Count the marks of real parties besides the one of `mark`."""
    count = 0
    for i in range(MARKS):
        count += _is_other(marks[i], mark)
    return count


@njit(nogil=True, cache=True)
def _move_on(slots, shared, row, mark):
    """Set the time of the mark's party in a known row to the mark's, if that is later."""
    word = slots[row + _ONE]
    if word > 0:
        slots[row + _ONE] = max(word, mark)
        return
    for i in range(MARKS):
        if shared[-1 - word, i] >> TIME_BITS == mark >> TIME_BITS:
            shared[-1 - word, i] = max(shared[-1 - word, i], mark)


@njit(nogil=True, cache=True)
def _tell_others(heard, tag, mark, told_tags, told_marks, written):
    """Write the marks of the other parties; return how many are written by now."""
    for i in range(MARKS):
        if _is_other(heard[i], mark):
            told_tags[written] = tag
            told_marks[written] = heard[i]
            written += 1
    return written
