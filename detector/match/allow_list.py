"""Shingles that never count: public ones by their key, and judged ones by their digest."""

import numpy as np

from detector.match.digests import Digester
from detector.sketch.shingle import Keys, Mask

_NONE = np.empty(0, np.int64)


class AllowList:
    """Which shingles never count; any `digests` are those of the `digester`."""

    def __init__(
        self, keys: Keys = _NONE, *, digests: Keys = _NONE, digester: Digester | None = None
    ) -> None:
        self._keys = np.unique(keys)
        self._digests = np.unique(digests)
        self._digester = digester

    def __len__(self) -> int:
        """How many there are."""
        return len(self._keys) + len(self._digests)

    def holds(self, keys: Keys) -> Mask:
        """Return for each shingle whether it never counts."""
        held: Mask = np.isin(keys, self._keys)
        if self._digester is not None and len(self._digests):
            held |= np.isin(self._digester.tags(keys), self._digests)
        return held
