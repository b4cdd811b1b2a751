"""Plain matching, the figure to beat: responses that share any 10 tokens with another tenant.

Any pool, different tenants, source at most a window earlier (start to start), nothing explained.
"""

from collections.abc import Sequence as Items

import numpy as np
from numpy.typing import NDArray

from detector.model import Kind, Sequence
from detector.sketch.shingle import shingle_keys

WINDOW_MS = 300_000
"""Five minutes, the lookback that public advice on these incidents names."""


def raw_flagged(sequences: Items[Sequence], *, window_ms: int = WINDOW_MS) -> int:
    """Count the requests whose response has a shingle that another tenant showed in the window.

    Sorts all shingles by (key, start): what matters for an occurrence is only the latest one of
    another tenant at or before it, or one of another tenant at the same instant after it.
    """
    keys, owner = _shingles(sequences)
    tenants = {tenant: number for number, tenant in enumerate({s.tenant for s in sequences})}
    tenant = np.array([tenants[s.tenant] for s in sequences], np.int64)
    start = np.array([s.started_at_ms for s in sequences], np.int64)
    order = np.lexsort((tenant[owner], start[owner], keys))
    keys, owner = keys[order], owner[order]
    at, who = start[owner], tenant[owner]
    first = np.flatnonzero(_changes(keys) | _changes(who))
    block = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(keys))))
    flagged = _near(keys, at, other=first[block] - 1, window_ms=window_ms)
    following = np.append(first[1:], len(keys))
    flagged |= _near(keys, at, other=following[block], window_ms=0)
    return len(
        {
            (s.tenant, s.request_id, s.started_at_ms)
            for s in (sequences[i] for i in np.unique(owner[flagged]).tolist())
            if s.kind is Kind.RESPONSE
        }
    )


def _shingles(sequences: Items[Sequence]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return every shingle key and the index of its sequence."""
    each = [shingle_keys(sequence.token_hashes) for sequence in sequences]
    owner = np.repeat(np.arange(len(each)), [len(keys) for keys in each])
    return np.concatenate([np.empty(0, np.int64), *each]), owner


def _changes(values: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the first value and every value that differs from the one before it."""
    changes = np.ones(len(values), np.bool_)
    changes[1:] = values[1:] != values[:-1]
    return changes


def _near(
    keys: NDArray[np.int64], at: NDArray[np.int64], *, other: NDArray[np.int64], window_ms: int
) -> NDArray[np.bool_]:
    """Mark where the occurrence at `other` has the same key and a start within the window."""
    exists = (other >= 0) & (other < len(keys))
    other = np.where(exists, other, 0)
    return np.asarray(exists & (keys[other] == keys) & (np.abs(at - at[other]) <= window_ms))
