"""The state of a worker, put together from its handler, its runner and its lag."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

from detector.index.shared_memory import SharedMemory
from detector.match.confidence import CONTENT_SEVERITY
from detector.match.reasons import Reason
from detector.model import Kind
from detector.rules.content import DUPLICATED_RESPONSE, FOREIGN_PROMPT, FOREIGN_RESPONSE
from detector.streaming.bands_exchange import BANDS_REFUSED, BandsExchange
from detector.streaming.exchange import REFUSED, Exchange
from detector.streaming.handler import Held, StreamHandler
from detector.streaming.lag import LagTracker
from exporters.metrics import KnownLabels
from exporters.worker_state import PartitionState, RangeState, SharingState, WorkerState
from ingest.broker import TopicPartition
from ingest.dead_letter import OTHER, REASONS
from ingest.stream import Clock

REFRESH_SECONDS = 1.0
"""How old the counts may get while records come: adding them up takes a fraction of a batch."""

ROW_REFUSALS = ("too_large", "unencodable")
"""Why a row cannot be packed: larger than a message may be, or what no encoding can carry."""

NO_TOKENS = "no_tokens"
OTHER_KEY = "other_key"
"""Causes of blindness: no token ids came; hashed under another secret, so that it meets nothing
that is hashed under the current one."""


class Runner(Protocol):
    """What a stream runner says of itself; from any thread."""

    @property
    def assigned(self) -> bool:
        """True once the group has said which partitions are ours, be it none."""
        ...

    def warming(self) -> list[int]:
        """Return the partitions whose window is still being rebuilt."""
        ...

    def end_of(self, at: TopicPartition) -> int | None:
        """Return the offset that the next record of an input gets, None if unknown."""
        ...


class Monitor:
    """A StateSource. Counts are read in the handler's thread, by `refresh`, and kept for others.

    `runner` is set once there is one. The exchange is there when workers share what is common, and
    `bands` when they also compare responses over all pools.
    """

    def __init__(
        self,
        handler: StreamHandler,
        *,
        learning_ms: int,
        exchange: Exchange | None = None,
        bands: BandsExchange | None = None,
        key_file_unreadable: Callable[[], bool] = lambda: False,
        clock: Clock = time.monotonic,
        now_s: Callable[[], float] = time.time,
    ) -> None:
        self._handler = handler
        self._exchange = exchange
        self._bands = bands
        self._learning_ms = learning_ms
        self._key_file_unreadable = key_file_unreadable
        self._clock = clock
        self._warmup_seconds = 0.0
        self.lag = LagTracker(self._end_of, now_s=now_s)
        self.runner: Runner | None = None
        self._counts = self._counted()
        self._counted_at = clock()

    def refresh(self) -> None:
        """Read the counts; call it in the handler's thread when something has changed for good."""
        self._counts, self._counted_at = self._counted(), self._clock()

    def refresh_if_due(self) -> None:
        """Read the counts if they are old; call it in the handler's thread after every batch."""
        if self._clock() - self._counted_at >= REFRESH_SECONDS:
            self.refresh()

    def warmed_up(self, partition: int, seconds: float, records: int) -> None:  # noqa: ARG002
        """Hear that a window has been rebuilt; the records are counted as they come."""
        self._warmup_seconds += seconds

    def state(self) -> WorkerState:
        """Return what is known now."""
        runner = self.runner
        warming = set() if runner is None else set(runner.warming())
        counts = self._counts
        return replace(
            counts,
            assigned=runner is not None and runner.assigned,
            partitions=tuple(
                replace(at, warming=at.partition in warming) for at in counts.partitions
            ),
            inputs=tuple(self.lag.states()),
            warmup_seconds=self._warmup_seconds,
        )

    def _end_of(self, at: TopicPartition) -> int | None:
        return None if self.runner is None else self.runner.end_of(at)

    def _counted(self) -> WorkerState:
        handler, tally, totals = self._handler, self._handler.tally, self._handler.totals()
        memory = handler.memory
        reach_ms = _reach_ms(memory.seen.since_ms, memory.now_ms)
        return WorkerState(
            partitions=tuple(_partition(*one) for one in sorted(handler.held.items())),
            records=dict(tally.records),
            sequences=dict(tally.sequences),
            tokens=tally.tokens,
            warmup_records=tally.warmup_records,
            evicted_sequences=totals.evicted,
            late_sequences=totals.late,
            forced_sequences=totals.forced,
            clock_jumps=totals.clock_jumps,
            dead_letters=dict(tally.dead_letters),
            rows_refused=dict(tally.rows_refused),
            key_file_unreadable=self._key_file_unreadable(),
            blind={
                NO_TOKENS: sum(tally.without_tokens.values()),
                OTHER_KEY: handler.intake.other_keys,
            },
            findings=dict(tally.findings),
            response_shingles=totals.stats.response_shingles,
            overlapping_shingles=totals.stats.overlapping_shingles,
            unexplained_shingles=totals.stats.unexplained_shingles,
            explained=dict(totals.explained),
            learning=reach_ms < self._learning_ms,
            commonness_bytes=memory.seen.nbytes,
            commonness_reach_seconds=reach_ms / 1000,
            commonness_shortened=memory.seen.early_rotations,
            sharing=self._shared(),
        )

    def _shared(self) -> SharingState:
        memory, exchange = self._handler.memory, self._exchange
        if exchange is None or not isinstance(memory, SharedMemory):
            return SharingState()
        told = memory.exchanged
        return SharingState(
            ranges=tuple(
                RangeState(
                    partition=one.partition,
                    table_bytes=one.nbytes,
                    reach_seconds=_reach_ms(one.since_ms, memory.now_ms) / 1000,
                )
                for one in exchange.states()
            ),
            showings={"told": told.told, "heard": told.heard},
            taints={"told": told.taints_told, "heard": told.taints_heard},
            refused=Counter(exchange.bad_records) + Counter(self._bands_refused()),
            evicted_sketches=0 if self._bands is None else self._bands.known.evicted,
        )

    def _bands_refused(self) -> dict[str, int]:
        return {} if self._bands is None else dict(self._bands.bad_records)


def known_labels(topics: Iterable[str]) -> KnownLabels:
    """Return the label values that a worker with these input topics can have."""
    rules = (FOREIGN_PROMPT, FOREIGN_RESPONSE, DUPLICATED_RESPONSE)
    return KnownLabels(
        topics=tuple(topics),
        kinds=tuple(kind.value for kind in Kind),
        dead_letter_reasons=(*sorted(REASONS), OTHER),
        shared_reasons=(*REFUSED, *BANDS_REFUSED),
        row_reasons=ROW_REFUSALS,
        blind_causes=(NO_TOKENS, OTHER_KEY),
        findings=tuple(
            (rule, severity.value, confidence.value)
            for rule in rules
            for confidence, severity in CONTENT_SEVERITY.items()
        ),
        reasons=tuple(reason.value for reason in Reason),
    )


def _partition(number: int, held: Held) -> PartitionState:
    window = held.window
    return PartitionState(
        partition=number,
        watermark_ms=window.sequencer.watermark_ms,
        postings=window.detector.postings,
        index_bytes=window.detector.index_bytes,
    )


def _reach_ms(since_ms: int | None, now_ms: int) -> int:
    return 0 if since_ms is None else max(now_ms - since_ms, 0)
