"""What all detectors of a process share: who has shown what within a day, taint, party numbers."""

import sys

import numpy as np
from numpy.typing import NDArray

from detector.index.showings import Taint
from detector.index.taint import TaintedShingles
from detector.index.tenant_table import TenantTable
from detector.settings import CommonnessSettings
from detector.sketch.shingle import Keys

_NO_STATE = np.empty(0, np.uint64)

PARTY_HORIZONS = 2
"""A mark is forgotten two horizons after its party last showed anything: so may the number be."""


class PartyNumbers:
    """Numbers parties from 1 on; one that has not been seen for long is forgotten.

    Two generations stand behind one another and a name that is used goes into the newer one, so
    a number outlives the marks that hold it and distinct names of the past cost nothing. A number
    is never given to another party.
    """

    def __init__(self, *, keep_ms: int) -> None:
        self._keep_ms = keep_ms
        self._new: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._began_ms: int | None = None
        self._last = 0

    def __len__(self) -> int:
        return len(self._new) + len(self._old)

    def number(self, name: str, now_ms: int) -> int:
        """Return the number of a party; `now_ms` is event time that never goes back."""
        self._rotate_if_due(now_ms)
        number = self._new.get(name)
        if number is None:
            number = self._old.pop(name, None)
            if number is None:
                self._last = number = self._last + 1
            self._new[name] = number
        return number

    def _rotate_if_due(self, now_ms: int) -> None:
        if self._began_ms is None:
            self._began_ms = now_ms
        age_ms = now_ms - self._began_ms
        if age_ms >= self._keep_ms:
            self._old = self._new if age_ms < 2 * self._keep_ms else {}
            self._new, self._began_ms = {}, now_ms


class Memory:
    """The memory of a day over all pools. Its clock is the newest event time of any detector."""

    def __init__(self, settings: CommonnessSettings) -> None:
        self.seen = TenantTable(horizon_ms=settings.horizon_ms, memory_bytes=settings.memory_bytes)
        self.tainted = TaintedShingles(horizon_ms=settings.horizon_ms)
        self.parties = PartyNumbers(keep_ms=PARTY_HORIZONS * settings.horizon_ms)
        self.now_ms = -sys.maxsize
        self._key_since_ms: dict[str, int] = {}

    def advance(self, event_ms: int) -> None:
        """Move the clock on; it never goes back."""
        self.now_ms = max(self.now_ms, event_ms)

    def hear(self, key_id: str) -> None:
        """Note that text hashed under a secret comes; the first secret is known since ever.

        After a restart what is remembered is mostly of the secret that comes first, and the age of
        the memory alone tells how much that is. Under any further secret nothing is known at first,
        in no pool: pools change over at times of their own, so the memory's clock tells since when.
        """
        if key_id not in self._key_since_ms:
            self._key_since_ms[key_id] = self.now_ms if self._key_since_ms else -sys.maxsize

    def known_since_ms(self, key_id: str) -> int | None:
        """Return since when what comes under a secret is remembered, None before any showing."""
        since_ms = self.seen.since_ms
        return None if since_ms is None else max(since_ms, self._key_since_ms.get(key_id, since_ms))

    def party(self, name: str) -> int:
        """Return the number of the party of that name."""
        return self.parties.number(name, self.now_ms)

    @property
    def state(self) -> NDArray[np.uint64]:
        """The hash state that turns shingle keys into the keys of this memory; empty for none."""
        return _NO_STATE

    def tagged(self, keys: Keys) -> Keys:
        """Return the keys by which this memory knows the shingles."""
        return keys

    def shown(self, fresh: Keys, *, party: int, seen_ms: int) -> None:
        """Hear of what a party has just shown and was not remembered to have shown before."""

    def taint(self, taint: Taint) -> None:
        """Taint shingles, and take back that their receiver has shown them since it got them."""
        self.tainted.add(taint.tags, origin=taint.origin, now_ms=taint.at_ms)
        self.seen.unlearn(taint.tags, party=taint.receiver, since_ms=taint.since_ms)
