"""The figures of each engine that an operator watches: unreleased, failures, mismatches, fill.

Counts run from the start of this process and never go back: a restart of the engine, whose own
counters begin anew, goes on where it was.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ingest.schema_records import EngineEvent, EventKind, Quality, RuntimeSample

Key = tuple[str, int | None]
"""Name of an engine and rank."""

CLEAR_FAILURES: Final = "clear_failures"
METADATA_MISMATCHES: Final = "metadata_mismatches"
TRANSFER_FAILURES: Final = "transfer_failures"

_OF_EVENTS: Final[Mapping[EventKind, str]] = {
    EventKind.CLEAR_FAILED: CLEAR_FAILURES,
    EventKind.LEASE_EXPIRED: CLEAR_FAILURES,
    EventKind.DEFERRED_RELEASE_TIMEOUT: CLEAR_FAILURES,
    EventKind.METADATA_MISMATCH: METADATA_MISMATCHES,
    EventKind.CHECKSUM_MISMATCH: METADATA_MISMATCHES,
    EventKind.TRANSFER_FAILED: TRANSFER_FAILURES,
}
"""What events of the log count as. A leak message is none: an engine repeats it for one leak."""


class EngineFigures(NamedTuple):
    """One rank of one engine; None is unknown. Counts are since the start of this process.

    `counts` are by figure and by where they come from: "metrics" or "log".
    """

    engine: str
    rank: int | None
    unreleased_tokens: int | None
    unreleased_quality: Quality
    pool_usage_ratio: float | None
    counts: Mapping[tuple[str, str], int]


class KeyFigures:
    """Keeps the figures of all engines. For one thread; `snapshot` is a copy."""

    def __init__(self) -> None:
        self._samples: dict[Key, RuntimeSample] = {}
        self._counts: dict[Key, Counter[tuple[str, str]]] = {}
        self._last: dict[tuple[Key, str], int] = {}

    def sampled(self, sample: RuntimeSample) -> None:
        """Take a sample in."""
        key = (sample.engine, sample.rank)
        self._samples[key] = sample
        counts = self._counts.setdefault(key, Counter())
        for figure, total in (
            (CLEAR_FAILURES, sample.clear_failures_total),
            (METADATA_MISMATCHES, sample.metadata_mismatches_total),
            (TRANSFER_FAILURES, sample.transfer_failures_total),
        ):
            if total is not None:
                last = self._last.get((key, figure), total)
                counts[figure, "metrics"] += total - last if total >= last else total
                self._last[key, figure] = total

    def heard(self, event: EngineEvent) -> None:
        """Take an event of a log in; events that are no failure are passed over."""
        figure = _OF_EVENTS.get(event.kind)
        if figure is not None:
            self._counts.setdefault((event.engine, None), Counter())[figure, "log"] += 1

    def lost(self, engine: str) -> None:
        """Forget the levels of an engine that no longer answers: they are not known any more."""
        for key in [key for key in self._samples if key[0] == engine]:
            del self._samples[key]

    def snapshot(self) -> Iterator[EngineFigures]:
        """Yield the figures of every engine, by name and rank."""
        for key in sorted(self._counts, key=lambda key: (key[0], -1 if key[1] is None else key[1])):
            sample = self._samples.get(key)
            yield EngineFigures(
                engine=key[0],
                rank=key[1],
                unreleased_tokens=None if sample is None else sample.unreleased_tokens,
                unreleased_quality=(sample and sample.unreleased_quality) or Quality.UNKNOWN,
                pool_usage_ratio=None if sample is None else sample.pool_usage_ratio,
                counts=dict(self._counts[key]),
            )
