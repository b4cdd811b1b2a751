"""Tainted shingles: those of unexplained runs, which must never count as common or as history.

A content that bleeds again and again would otherwise explain itself: measured recall of a repeated
bleed is 6 % when the memory learns from the bleeds, 100 % when it does not.
"""

import numpy as np

from detector.index.tenant_table import Marks, TenantTable
from detector.kernels import tenants
from detector.sketch.shingle import Keys, Mask

MEMORY_BYTES = 64 * 1024 * 1024
"""Tainted shingles are few: findings times run length; 64 MiB hold two million of them."""


class TaintedShingles:
    """The tainted shingles of the horizon, each with the party it came from."""

    def __init__(self, *, horizon_ms: int) -> None:
        self._table = TenantTable(horizon_ms=horizon_ms, memory_bytes=MEMORY_BYTES)
        self._maybe = np.zeros(1 << tenants.FILTER_BITS, np.bool_)

    @property
    def is_empty(self) -> bool:
        """True while nothing is tainted."""
        return self._table.is_empty

    def add(self, keys: Keys, *, origin: int, now_ms: int) -> None:
        """Taint the keys for one more horizon; the party they first came from stays the origin."""
        first = tenants.last_party(*self._table.tables, keys)
        first[first < 0] = origin
        for party in sorted(set(first.tolist())):
            self._table.learn(keys, first == party, party=party, seen_ms=now_ms, now_ms=now_ms)
        tenants.remember(self._maybe, keys, np.ones(len(keys), np.bool_))

    @property
    def tables(self) -> tuple[Mask, Marks, Marks]:
        """The filter and both generations as kernels take them."""
        slots, _, old_slots, _ = self._table.tables
        return self._maybe, slots, old_slots

    def contains(self, keys: Keys) -> Mask:
        """True for every tainted key."""
        return tenants.contains(*self.tables, keys)  # type: ignore[no-any-return]

    def origins(self, keys: Keys) -> Marks:
        """Return the marks of every key; their party is where the content came from."""
        return self._table.lookup(keys)
