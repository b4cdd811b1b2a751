"""The first look at every hit: own prompt, commonness and own history (numba)."""

import numpy as np

from detector.kernels.cache import njit
from detector.kernels.postings import in_sequence_of
from detector.kernels.seek import BLOCK, bring
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
    at, sources, keys, tagged, salt, sink_party, latest_ms, owners, starts,
    rows, expired, slots, shared, old_slots, old_shared,
):  # fmt: skip
    """Return one code per hit, the first reason that applies.

    Hit h lies at position `at[h]` of the sink and stems from sequence `sources[h]`; hits of one
    position should stand together. `rows` is the postings' table, which knows the sink's keys under
    a salt and whose sequences below `expired` are gone; the rest are the tenants' two generations,
    which know them as `tagged`. Own prompt: the receiver showed it in a
    prompt that started by `latest_ms`, the start of the sink. Common: a party besides the two has
    shown it. Own history: the receiver had before the source started, in another request than the
    sink's own, whose response is known by the time that a late source comes.
    """
    codes = np.zeros(len(at), np.uint8)
    marks = np.zeros(2 * MARKS, np.int64)
    buckets = np.empty(BLOCK, np.uint64)
    before = -1
    own = False
    for h in range(len(at)):
        if h % BLOCK == 0:
            next_at = at[h : h + BLOCK]
            bring(rows, keys[next_at] ^ salt, buckets)
            bring(slots, tagged[next_at], buckets)
            bring(old_slots, tagged[next_at], buckets)
        if at[h] != before:
            before = at[h]
            marks_of(slots, shared, old_slots, old_shared, tagged[before], marks)
            own = in_sequence_of(
                rows, expired, keys[before] ^ salt, owners, sink_party * 2, starts, latest_ms
            )
        if own:
            codes[h] = OWN_PROMPT
        else:
            source = sources[h]
            codes[h] = _by_marks(
                marks, owners[source] >> 1, starts[source] // 1000, sink_party, latest_ms // 1000
            )
    return codes


@njit(nogil=True, cache=True)
def _by_marks(marks, source_party, source_start_s, sink_party, sink_start_s):
    code = UNEXPLAINED
    for i in range(2 * MARKS):
        party = (marks[i] >> TIME_BITS) - 1
        if party <= NOBODY:
            continue
        if party == sink_party:
            seen_s = (marks[i] & TIME_MASK) - TIME_OFFSET
            if seen_s < source_start_s and seen_s != sink_start_s:
                code = OWN_HISTORY
        elif party != source_party:
            return COMMON
    return code
