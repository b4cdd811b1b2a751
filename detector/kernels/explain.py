"""The first look at every hit: do the receiver's prompts, commonness or history explain it (numba)?"""

import numpy as np
from numba import njit

from detector.kernels.postings import first_of, home_row, last_of, tag_of
from detector.kernels.prefetch import PREFETCH_AHEAD, prefetch_row
from detector.kernels.tenants import (
    MARKS,
    NOBODY,
    TIME_BITS,
    TIME_MASK,
    TIME_OFFSET,
    marks_of,
)

UNEXPLAINED = 0
OWN_PROMPT = 1
COMMON = 2
OWN_HISTORY = 3


@njit(nogil=True, cache=True)
def explain_hits(
    at, sources, keys, pool_keys, sink_party, latest_ms, owners, starts,
    rows, row_homes, slots, homes, shared, old_slots, old_homes, old_shared,
):  # fmt: skip
    """Return one code per hit, the first reason that applies.

    Hit h lies at position `at[h]` of the sink and stems from sequence `sources[h]`; hits of one
    position should stand together. `rows` is the postings' table, the rest the tenants' two
    generations. Own prompt: the receiver showed it in a prompt that started by `latest_ms`. Common:
    a party besides the two has shown it. Own history: the receiver did before the source started.
    """
    codes = np.zeros(len(at), np.uint8)
    marks = np.zeros(MARKS, np.int64)
    before = -1
    own = False
    for h in range(len(at)):
        if h + PREFETCH_AHEAD < len(at):
            ahead = at[h + PREFETCH_AHEAD]
            prefetch_row(rows, home_row(pool_keys[ahead], row_homes))
            prefetch_row(slots, home_row(keys[ahead], homes))
            if old_homes:
                prefetch_row(old_slots, home_row(keys[ahead], old_homes))
        if at[h] != before:
            before = at[h]
            marks_of(slots, homes, shared, old_slots, old_homes, old_shared, keys[before], marks)
            own = _in_prompt(
                rows, row_homes, pool_keys[before], owners, sink_party * 2, starts, latest_ms
            )
        if own:
            codes[h] = OWN_PROMPT
        else:
            source = sources[h]
            codes[h] = _by_marks(marks, owners[source] >> 1, starts[source] // 1000, sink_party)
    return codes


@njit(nogil=True, cache=True)
def _in_prompt(rows, homes, key, owners, owner, starts, latest_ms):
    """Tell whether `owner` has shown the key in a sequence that started by `latest_ms`."""
    row = home_row(key, homes)
    while row < rows.shape[0] and rows[row, 1] != 0:
        if tag_of(rows[row, 0]) == tag_of(key) and owners[last_of(rows[row, 1])] == owner:
            return starts[first_of(rows[row, 1])] <= latest_ms
        row += 1
    return False


@njit(nogil=True, cache=True)
def _by_marks(marks, source_party, source_start_s, sink_party):
    code = UNEXPLAINED
    for i in range(MARKS):
        if marks[i] == 0:
            break
        party = (marks[i] >> TIME_BITS) - 1
        if party == NOBODY:
            continue
        if party == sink_party:
            if (marks[i] & TIME_MASK) - TIME_OFFSET < source_start_s:
                code = OWN_HISTORY
        elif party != source_party:
            return COMMON
    return code
