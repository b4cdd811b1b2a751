"""Repeated bleeds: judge sinks in order of start, with and without leaving flagged content out.

A content that bleeds into many tenants soon looks common. Leaving out means: from the start of a
flagged response on, the shingles of its unexplained runs no longer count as shown, by anybody.
"""

from collections import defaultdict

import numpy as np

from tests.reference.table import Hits, Mask, Runs, runs
from tests.reference.traffic import Traffic


def judge_in_order(t: Traffic, h: Hits, explained: Mask, *, leave_out: bool) -> Runs:
    """Return the runs that commonness and own history, applied sink by sink, leave over.

    `explained` is what the filters without memory explain.
    """
    h = h.keep(~explained)
    shown = _occurrences(t, np.unique(t.shingle[h.sink]))
    tainted_from: dict[int, float] = {}
    left = np.zeros(len(h.sink), np.bool_)
    sinks = t.sequence[h.sink]
    for sink in sorted(set(sinks.tolist()), key=lambda s: (t.start[s], s)):
        mine = np.flatnonzero(sinks == sink)
        for at in mine:
            name = int(t.shingle[h.sink[at]])
            tainted = tainted_from.get(name, float("inf"))
            seen = [(start, tenant) for start, tenant in shown[name] if start < tainted]
            left[at] = not _explained(t, seen, sink, int(t.sequence[h.source[at]]))
        if leave_out:
            for name in t.shingle[h.sink[mine[left[mine]]]].tolist():
                tainted_from.setdefault(name, float(t.start[sink]))
    return runs(t, h.keep(left))


def _occurrences(t: Traffic, names: np.ndarray) -> dict[int, list[tuple[float, int]]]:
    """Return the distinct (start, tenant) of every occurrence of the named shingles."""
    at = np.flatnonzero(np.isin(t.shingle, names))
    shown: dict[int, set[tuple[float, int]]] = defaultdict(set)
    for name, sequence in zip(t.shingle[at].tolist(), t.sequence[at].tolist(), strict=True):
        shown[name].add((float(t.start[sequence]), int(t.tenant[sequence])))
    return {name: sorted(seen) for name, seen in shown.items()}


def _explained(t: Traffic, seen: list[tuple[float, int]], sink: int, source: int) -> bool:
    """Common, or own history, given what was seen of the shingle."""
    pair = (t.tenant[sink], t.tenant[source])
    common = any(start < t.start[sink] and who not in pair for start, who in seen)
    had = any(start < t.start[source] and who == t.tenant[sink] for start, who in seen)
    return common or had
