"""One finding per conversation: later turns that repeat a reported run are not reported again."""

from collections import deque

import numpy as np

from detector.sketch.shingle import Keys

SessionKey = tuple[str, str, int]


class SessionRepeats:
    """Remembers the reported shingles per (sink tenant, session, source party) for a while."""

    def __init__(self, *, keep_ms: int) -> None:
        self._keep_ms = keep_ms
        self._reported: dict[SessionKey, Keys] = {}
        self._order: deque[tuple[int, SessionKey]] = deque()
        self.repeats = 0

    def is_repeat(self, session: SessionKey, keys: Keys, at_ms: int) -> bool:
        """True when the session was told of all these shingles before; remembers them if not."""
        while self._order and self._order[0][0] < at_ms - self._keep_ms:
            self._reported.pop(self._order.popleft()[1], None)
        known = self._reported.get(session)
        if known is not None and bool(np.isin(keys, known).all()):
            self.repeats += 1
            return True
        self._reported[session] = keys if known is None else np.union1d(known, keys)
        self._order.append((at_ms, session))
        return False
