"""What happened on each pool lately, to be laid beside a finding; bounded, by event time."""

from bisect import insort
from typing import Final, NamedTuple

MAX_PER_SIGNAL: Final = 256
"""Entries kept of one signal of one pool; the oldest goes first. What fails more often than that
within a window has evidence enough."""

CLEAR_FAILURE: Final = "clear_failure"
METADATA_MISMATCH: Final = "metadata_mismatch"
TRANSFER_FAILURE: Final = "transfer_failure"
UNRELEASED_KV: Final = "unreleased_kv"
REJECTED_ANSWERED: Final = "rejected_answered"

SIGNALS: Final = (
    CLEAR_FAILURE,
    METADATA_MISMATCH,
    TRANSFER_FAILURE,
    UNRELEASED_KV,
    REJECTED_ANSWERED,
)
"""What raises the severity of a content finding; the gravest first."""


class Happened(NamedTuple):
    """One piece of evidence: what, where, when, how much (failures, or tokens unreleased)."""

    at_ms: int
    signal: str
    engine: str
    source: str
    """Where it was read: `log`, `metrics` or `requests`."""
    amount: int


class PoolEvidence:
    """The evidence of all pools of a partition. A piece that comes twice is kept once."""

    def __init__(self, *, keep_ms: int) -> None:
        self._keep_ms = keep_ms
        self._of: dict[str, dict[str, list[Happened]]] = {}
        self._news: dict[str, set[Happened]] = {}

    def add(self, kv_pool: str, piece: Happened, *, is_news: bool) -> bool:
        """Take a piece of evidence; False for one that is known."""
        known = self._of.setdefault(kv_pool, {}).setdefault(piece.signal, [])
        if piece in known:
            return False
        insort(known, piece)
        if is_news:
            self._news.setdefault(kv_pool, set()).add(piece)
        if len(known) > MAX_PER_SIGNAL:
            self._forget(kv_pool, known.pop(0))
        return True

    def between(
        self, kv_pool: str, first_ms: int, last_ms: int, *, but_news: bool = False
    ) -> list[Happened]:
        """Return what happened on a pool from `first_ms` to `last_ms`, in the order of time.

        With `but_news` only what had been known before this partition was assigned.
        """
        of_pool = self._of.get(kv_pool, {}).values()
        news = self._news.get(kv_pool, set()) if but_news else ()
        found = (one for known in of_pool for one in known if first_ms <= one.at_ms <= last_ms)
        return sorted(one for one in found if one not in news)

    def expire(self, now_ms: int) -> None:
        """Forget what is older than needed at this event time."""
        oldest_ms = now_ms - self._keep_ms
        for pool, of_pool in list(self._of.items()):
            for signal, known in list(of_pool.items()):
                for one in known:
                    if one.at_ms < oldest_ms:
                        self._forget(pool, one)
                of_pool[signal] = [one for one in known if one.at_ms >= oldest_ms]
            if not any(of_pool.values()):
                del self._of[pool]

    def _forget(self, kv_pool: str, piece: Happened) -> None:
        news = self._news.get(kv_pool, set())
        news.discard(piece)
        if not news:
            self._news.pop(kv_pool, None)
