"""Rule BW901: something was not seen; what was lost, where and how much, once for each episode.

What loses whole stretches is told at once. What single cases make too, such as a late sequence, is
told when there are several within the quiet time. It is over when none came for that long.
"""

from typing import Final, NamedTuple

from detector.finding import Finding, Severity
from detector.rules.engine_finding import AboutEngine
from detector.runtime.episodes import Failures
from detector.runtime.settings import RuntimeSettings

BLIND: Final = "BW901"

MAX_EPISODES: Final = 4_096
"""Episodes remembered in one partition: some causes of every engine; the oldest goes first."""


class Cause(NamedTuple):
    """Why something was not seen.

    `at_once`: one case is enough; `partly`: something of it is still seen, so less grave.
    """

    lost: str
    at_once: bool = False
    partly: bool = False


CAUSES: Final = {
    # what sidecars report
    "spool_dropped": Cause("messages were given up because the spool was full", at_once=True),
    "spool_damaged": Cause("bytes of the spool were damaged and cut off", at_once=True),
    "pipe_discarded": Cause(
        "bytes of a pipe were thrown away, nothing could be held", at_once=True
    ),
    "log_lost": Cause("stretches of logs were gone before they were read", at_once=True),
    "log_unreadable": Cause("entries of logs could not be read"),
    "ids_missing": Cause("sides of requests came without all of their token ids", partly=True),
    "tenant_unknown": Cause("requests had no tenant by any rule and were left out"),
    "push_refused": Cause("pushed requests could not be read"),
    "records_refused": Cause("records could not be packed", at_once=True),
    "engine_unseen": Cause("times it gave no answer about its state", partly=True),
    "samples_dropped": Cause("samples of engines were given up", at_once=True, partly=True),
    "kv_events_lost": Cause("messages of KV events were missed", at_once=True, partly=True),
    "kv_events_unreadable": Cause("KV events could not be used", partly=True),
    # what workers know
    "unknown_key": Cause("batches were sealed under a secret that workers lack", at_once=True),
    "unreadable": Cause("records or batches could not be read"),
    "no_tokens": Cause("prompts and responses came without token ids", partly=True),
    "other_key": Cause("sequences were hashed under another secret than others", partly=True),
    "late": Cause("sequences came long after their requests can have ended", partly=True),
    "forced": Cause("sequences were judged before their turn", partly=True),
    "evicted": Cause("sequences were given up inside the window for want of memory"),
}
"""Every cause, by the word that stands in engine events and findings."""

_OTHER: Final = Cause("losses of a cause that this release does not know", at_once=True)


class Lost(NamedTuple):
    """So much was not seen; `engine` is empty where a worker cannot say of which engine."""

    kv_pool: str
    engine: str
    cause: str
    amount: int
    at_ms: int


class BlindRule:
    """The rule for one partition."""

    def __init__(self, settings: RuntimeSettings) -> None:
        self._settings = settings
        self._episodes: dict[tuple[str, str, str], Failures] = {}

    def lost(self, lost: Lost) -> Finding | None:
        """Take what was lost; return the finding if it is to be told, once for an episode."""
        cause = CAUSES.get(lost.cause, _OTHER)
        episode = self._episode(lost, cause)
        since_ms = episode.add(lost.at_ms, "", lost.amount)
        if since_ms is None:
            return None
        where = f"engine {lost.engine}" if lost.engine else f"pool {lost.kv_pool}"
        return AboutEngine(lost.kv_pool, lost.engine).finding(
            BLIND,
            since_ms,
            lost.at_ms,
            f"Blind on {where}: {episode.count:,} {cause.lost}. What bled there may not be found.",
            {lost.cause: episode.count},
            severity=Severity.LOW if cause.partly else Severity.MEDIUM,
            about=lost.cause,
        )

    def _episode(self, lost: Lost, cause: Cause) -> Failures:
        key = (lost.kv_pool, lost.engine, lost.cause)
        episode = self._episodes.get(key)
        if episode is None:
            least = 1 if cause.at_once else self._settings.blind_losses
            episode = self._episodes[key] = Failures(self._settings.quiet_ms, least)
            if len(self._episodes) > MAX_EPISODES:
                del self._episodes[next(iter(self._episodes))]
        return episode
