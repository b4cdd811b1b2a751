"""What a sidecar could not see, reported as engine events: each loss once, by engine and cause."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from ingest.schema_records import EngineEvent, EventKind
from ingest.sidecar_health import LogHealth, SidecarHealth

REPORT_S: Final = 10.0
"""How often losses are reported: soon enough to act, and few records however much is lost."""

STRETCHES: Final = frozenset(
    {"file_gone", "truncated_unread", "late_write", "truncated_stream", "line_too_long"}
)
"""Reasons of a log that stand for whole stretches of it, not for single entries."""


class Place(NamedTuple):
    """Of which engine and pool something was lost."""

    engine: str
    kv_pool: str


class Lost(NamedTuple):
    """What was lost where; the cause is a word of rule BW901."""

    place: Place
    cause: str


class LossReports:
    """A feed of a sidecar. `look` gives its last look at itself, None before the first one.

    `place_of` tells whose a log is; what belongs to no log and no engine is put to `own`. Times of
    the events are those of `now_ms`.
    """

    def __init__(
        self,
        look: Callable[[], SidecarHealth | None],
        *,
        own: Place,
        place_of: Callable[[str], Place],
        now_ms: Callable[[], int],
    ) -> None:
        self._look = look
        self._own = own
        self._place_of = place_of
        self._now_ms = now_ms
        self._told: Counter[Lost] = Counter()
        self._told_s = -math.inf

    def __call__(self, now_s: float) -> list[EngineEvent]:
        """Return an event for everything of which more was lost since the last report."""
        health = self._look()
        if health is None or now_s - self._told_s < REPORT_S:
            return []
        self._told_s = now_s
        lost = self._lost(health)
        new = lost - self._told
        self._told |= lost
        return [
            EngineEvent(
                kind=EventKind.BLIND,
                engine=one.place.engine,
                kv_pool=one.place.kv_pool,
                at_ms=self._now_ms(),
                detail=one.cause,
                count=count,
            )
            for one, count in new.items()
        ]

    def _lost(self, health: SidecarHealth) -> Counter[Lost]:
        lost: Counter[Lost] = Counter()
        for log in health.logs:
            place = self._place_of(log.name)
            lost.update({Lost(place, cause): count for cause, count in _of_log(log)})
        lost.update({Lost(self._own, cause): count for cause, count in _of_process(health)})
        for events in health.beside.kv_events:
            place = Place(events.engine, events.kv_pool)
            lost[Lost(place, "kv_events_lost")] += events.messages.get("lost", 0)
            lost[Lost(place, "kv_events_unreadable")] += _all(events.unreadable)
        for engine in health.beside.engines:
            lost[Lost(Place(engine.engine, engine.kv_pool), "engine_unseen")] += engine.failed
        return lost


def _of_log(log: LogHealth) -> Iterator[tuple[str, int]]:
    stretches = sum(count for reason, count in log.broken.items() if reason in STRETCHES)
    yield "log_lost", stretches
    yield "log_unreadable", _all(log.broken) - stretches + log.ignored.get("unknown_format", 0)
    yield "ids_missing", _all(log.incomplete)
    yield "tenant_unknown", log.unmapped


def _of_process(health: SidecarHealth) -> Iterator[tuple[str, int]]:
    yield "pipe_discarded", health.discarded_bytes
    yield "records_refused", _all(health.refused)
    yield "samples_dropped", health.beside.dropped_samples
    if health.spool is not None:
        yield "spool_dropped", _all(health.spool.dropped)
        yield "spool_damaged", health.spool.cut_bytes
    if health.beside.push is not None:
        yield "ids_missing", _all(health.beside.push.incomplete)
        yield "tenant_unknown", health.beside.push.unmapped
        yield "push_refused", _all(health.beside.push.refused)


def _all(counts: Mapping[str, int]) -> int:
    return sum(counts.values())
